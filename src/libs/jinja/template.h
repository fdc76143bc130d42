// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/error.h"
#include "libs/jinja/value.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace baton::jinja {

// Limits of one rendering; a template that exceeds them fails.
struct Limits {
  std::size_t steps = 10'000'000;
  std::size_t depth = 200;  // of calls and nested expressions
  std::size_t output_bytes = 64UZ << 20;
};

// Inputs of a rendering besides its variables.
struct RenderContext {
  std::chrono::system_clock::time_point now;  // for strftime_now, in the process's time zone
  std::stop_token stop = {};                  // the error is then Stopped
  std::size_t expected_bytes = 0;             // of output, as far as that is known
  Limits limits = {};
  bool* crossed = nullptr;  // where it fails: whether a limit of steps or bytes was crossed
};

// Role. A chat template: Jinja as transformers sets it up (trim_blocks, lstrip_blocks, loop controls,
//   the `generation` block, tojson, raise_exception, strftime_now), sandboxed.
// Confinement. Immutable; any thread.
class Template {
 public:
  // A template that cannot be read, or uses what is not known, is an InvalidTemplate whose message
  // names the line and the problem.
  static Result<std::shared_ptr<const Template>> parse(std::string source);
  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  // An error while rendering (raise_exception, a limit, a wrong type) is a RenderFailed whose
  // message quotes the template's own.
  Result<std::string> render(const Dict& variables, const RenderContext& context) const;

 private:
  struct Program;
  explicit Template(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace baton::jinja
