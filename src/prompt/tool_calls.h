// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"

#include <cstddef>
#include <string>

namespace baton::prompt {

// The tool calls of an assistant's message as its template sees them.
struct ToolCalls {
  jinja::List calls;
  std::string inexact = {};  // why the engine will see other tokens; empty: it will not
};

// Reshapes the tool calls of message `index`: members in the order in which vLLM keeps them (id,
// function with arguments and name, type), and arguments parsed from JSON text, nothing being an
// empty object. Differs in SGLang, whose order is id, index, type and function with name and arguments.
Result<ToolCalls> tool_calls_of(const jinja::Value& calls, std::size_t index);

}  // namespace baton::prompt
