// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"
#include "prompt/content_format.h"
#include "prompt/rules.h"

#include <string>
#include <string_view>

namespace baton::prompt {

// The messages of a request as its template sees them.
struct Conversation {
  jinja::List messages;
  std::string inexact = {};  // why the engine will see other tokens; empty: it will not
};

// Rebuilds each message as vLLM does before rendering, from what vLLM keeps of it: role, content,
// tool_calls, reasoning, tool_call_id, name, task and a developer's tools. Differs in SGLang, which
// knows reasoning as `reasoning_content` only, drops a user's name, and writes roles in small letters.
Result<Conversation> conversation_of(const jinja::Value& messages, ContentFormat format,
                                     const Rules& rules);

// Whether a template knows messages of developers, by what the engines take for it: the role in
// quotes somewhere in its text.
bool names_developers(std::string_view source);
// For a template that does not: messages of developers become those of the system, and all of these
// are merged into one before the others, unless there is but one and it comes first.
void developers_to_system(jinja::List& messages);

}  // namespace baton::prompt
