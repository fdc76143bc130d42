// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <stdexcept>

namespace baton::tokenizer {

// Thrown where a text would take more time or memory than any text is given: a pattern that gives
// up, a word without end. Tokenizer::encode makes an error of it; no other function lets it out.
struct TooHard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace baton::tokenizer
