// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/chat_request.h"
#include "prompt/messages.h"
#include "wire/json_object.h"

#include <string>

namespace baton::prompt {

// Which engines will see exactly the tokens of a request, whether Baton made them or an engine that
// was asked.
struct Exactness {
  // Reason why no engine will see them (images, a requested truncation …); empty: engines will.
  std::string inexact = {};
  // Reason why one engine only will see them: others shape the request differently before
  // rendering.
  std::string engines_differ = {};
};

// Requires: both were made of `body`.
Exactness exactness_of(const ChatRequest& request, const Conversation& conversation,
                       const wire::JsonObject& body);

Exactness completion_exactness(const wire::JsonObject& body);

// For a chat that Baton does not render. Unreadable members make it inexact: the engine may read
// them.
Exactness chat_exactness(const wire::JsonObject& body);

}  // namespace baton::prompt
