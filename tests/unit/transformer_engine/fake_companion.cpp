// A library that a fake TransformerEngine is linked against.
extern "C" int nvfake_answer() {
  return 42;
}
