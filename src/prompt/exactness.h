// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/chat_request.h"
#include "prompt/messages.h"
#include "wire/json_object.h"

#include <string>

namespace baton::prompt {

// For whom the tokens of a request are the ones that the engine will see, whoever made them: Baton
// or an engine that was asked.
struct Exactness {
  // Why they tell the prompt of nobody (images, truncation that was asked for …); empty: they do.
  std::string inexact = {};
  // Why they are those of one engine only: others shape the request differently before they render it.
  std::string engines_differ = {};
};

// Requires: both were made of `body`.
Exactness exactness_of(const ChatRequest& request, const Conversation& conversation,
                       const wire::JsonObject& body);

Exactness completion_exactness(const wire::JsonObject& body);

// Of a chat that Baton does not render. What it cannot read is inexact: the engine may read it.
Exactness chat_exactness(const wire::JsonObject& body);

}  // namespace baton::prompt
