// What the program needs of its standard streams and signals before it does anything else.
#pragma once

namespace numcheck::app {

/// Takes the numbers 0, 1 and 2 where the caller closed them (>&-), or the next file that is opened would be written to
/// by everything that talks to standard output. Writing to a standard output that was closed fails, so that it is told;
/// what goes to a closed standard error is lost.
void open_standard_streams() noexcept;

/// Whatever the parent has blocked or ignored: interrupts arrive and ends of children are told. A file that grows
/// beyond `ulimit -f` is an error of write(2) like any other, not the end of the process. (A SIGINT or SIGHUP that is
/// ignored stays so: nohup.)
void set_up_signals() noexcept;

}  // namespace numcheck::app
