// An owned file descriptor.
#pragma once

#include "core/file_descriptor.hpp"

namespace numcheck::run {

using core::FileDescriptor;

}  // namespace numcheck::run
