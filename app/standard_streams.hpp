// Sets up standard streams and signals before anything else.
#pragma once

namespace numcheck::app {

/// Occupies the descriptors 0, 1 and 2 if the caller closed them (>&-); otherwise the next opened file would receive
/// everything meant for standard output. Writing to a standard output that was closed fails, so that it is reported;
/// what goes to a closed standard error is lost.
void open_standard_streams() noexcept;

/// Makes interrupts and the ends of children arrive, whatever the parent blocked or ignored. A file that grows beyond
/// `ulimit -f` becomes an ordinary error of write(2) instead of ending the process. (A SIGINT or SIGHUP that is ignored
/// stays ignored: nohup.)
void set_up_signals() noexcept;

}  // namespace numcheck::app
