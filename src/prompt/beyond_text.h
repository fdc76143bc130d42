// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/json_object.h"

#include <string>

namespace baton::prompt {

// What a chat has besides text (images, audio …): then token ids alone do not tell its prompt. Empty
// where there is nothing, or the messages make no sense.
std::string beyond_text(const wire::JsonObject& body);

}  // namespace baton::prompt
