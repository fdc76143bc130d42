// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/json_text.h"

#include <string_view>

namespace baton::wire {

// Whether a text is surely valid JSON, and an object or an array. Few valid texts are not sure: those
// that are nested very deep, and those with half of a surrogate pair. Nothing is copied, and nothing
// behind the text is read. Requires: the text's structure, valid UTF-8, and strings that are closed
// and hold no control characters.
bool surely_valid(std::string_view text, Structure structure);

}  // namespace baton::wire
