// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "prompt/content_format.h"
#include "prompt/jinja/value.h"

#include <string>

namespace baton::prompt {

// The messages of a request as its template sees them.
struct Conversation {
  jinja::List messages;
  std::string inexact = {};  // why the engine will see other tokens; empty: it will not
};

// Rebuilds each message as vLLM does before rendering, from what vLLM keeps of it: role, content,
// tool_calls, reasoning, tool_call_id, name, task and a developer's tools. Differs in SGLang, which
// knows reasoning as `reasoning_content` only, drops a user's name, and writes roles in small letters.
Result<Conversation> conversation_of(const jinja::Value& messages, ContentFormat format);

}  // namespace baton::prompt
