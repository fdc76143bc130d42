// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/beyond_text.h"

#include "prompt/messages.h"

#include <utility>

namespace baton::prompt {

std::string beyond_text(const wire::JsonObject& body) {
  const auto sent = body.find("messages");
  if (!sent) return {};
  const auto messages = jinja::value_within_json(*sent);
  if (!messages) return {};
  auto conversation = conversation_of(*messages, ContentFormat::Text);
  return conversation ? std::move(conversation->inexact) : std::string();
}

}  // namespace baton::prompt
