// Messages between coordinator and worker, neither of which trusts the other.
#include "worker/protocol.hpp"

#include "text.hpp"
#include "vocabulary.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace numcheck;
  const std::string_view text = fuzz::text(data, size);
  try {
    (void)worker::decode_from_worker(text);
  } catch (const worker::ProtocolError&) {
  }
  try {
    (void)worker::decode_from_coordinator(text, &fuzz::lookup);
  } catch (const worker::ProtocolError&) {
  }
  return 0;
}
