// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"

#include <simdjson.h>

#include <memory>
#include <string>
#include <vector>

namespace baton::tokenizer {

// Role. Makes text of tokens, as the `decoder` of a tokenizer.json says.
// Confinement. Immutable; any thread.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Null where there is none. A feature that is not known is an error that names it.
  static Result<std::unique_ptr<const Decoder>> from_json(simdjson::dom::element json);

  // Changes the tokens in place; the text is what they are in a row.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  // Its only step is ByteLevel: bytes come out as they went in.
  virtual bool byte_level() const { return false; }
};

}  // namespace baton::tokenizer
