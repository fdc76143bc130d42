// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"
#include "libs/tokenizer/tokenizer.h"
#include "prompt/rules.h"
#include "wire/json_object.h"

#include <cstddef>
#include <string>

namespace baton::prompt {

// Role. The inputs of template and tokenizer in the body of a chat request.
// Confinement. One thread.
// Lifetime. The body's text outlives it.
struct ChatRequest {
  jinja::Value messages;                      // as they were sent
  std::size_t message_bytes = 0;              // of JSON
  jinja::Value tools = jinja::Value::none();  // as the template sees them; None: there are none
  jinja::Value documents = jinja::Value::none();
  jinja::Dict kwargs;  // further variables of the template
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  tokenizer::AddSpecial add_special =
      tokenizer::AddSpecial::No;  // templates write the special tokens themselves
  bool brings_template = false;
  std::string inexact = {};  // why the engine will see other tokens
};

// Reads a body like vLLM, with vLLM's defaults, except where the rules of an engine differ.
Result<ChatRequest> chat_request(const wire::JsonObject& body, const Rules& rules);

// All variables of a template: `base` (the model's special tokens), the request's additions and
// changes, and the messages.
jinja::Dict template_variables(const jinja::Dict& base, const ChatRequest& request,
                               jinja::List messages);

}  // namespace baton::prompt
