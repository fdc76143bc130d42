// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/pieces.h"

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Whether a text begins the whole input; text behind an added token does not.
enum class Place { First, Later };

// Role. Cuts normalized text into the pieces that the model encodes one by one, as the
//   `pre_tokenizer` of a tokenizer.json says.
// Confinement. Immutable; any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Null where the whole text is one piece. A feature that is not known is an error that names it.
  static Result<std::unique_ptr<const PreTokenizer>> from_json(simdjson::dom::element json);
  // A single regular expression whose matches are the pieces, and so is what lies between them:
  // tiktoken's way. Pieces are bytes (byte_level).
  static Result<std::unique_ptr<const PreTokenizer>> from_pattern(std::string_view pattern);

  // Appends the pieces in order. Requires: valid UTF-8.
  virtual void split(std::string_view text, Place place, Pieces& pieces) const = 0;
  // The last step is ByteLevel: the model's vocabulary is written in ByteLevel's alphabet. Pieces
  // are handed out as the plain bytes they stand for; the vocabulary is to be translated instead.
  virtual bool byte_level() const = 0;
  // A piece begins with each space behind an ASCII letter; and what stands on either side is cut
  // the same without the other side.
  virtual bool cuts_between_words() const = 0;
};

}  // namespace baton::tokenizer
