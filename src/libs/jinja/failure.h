// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace baton::jinja {

// How a template fails on its way out of the parser or the interpreter. Thrown, because any of a
// hundred small operations may fail deep inside an expression; Template turns it into a Result, and
// no other folder ever sees it.
struct Failure {
  std::string message;
  bool limit = false;    // of steps or bytes
  bool stopped = false;  // by the caller
};

template <class... Args>
[[noreturn]] void raise(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{.message = fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace baton::jinja
