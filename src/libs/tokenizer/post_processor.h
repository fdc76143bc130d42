// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/token.h"

#include <simdjson.h>

#include <vector>

namespace baton::tokenizer {

// The special tokens around a text: what is left of a `post_processor` where only ids matter.
struct PostProcessor {
  TokenIds before;
  TokenIds after;
  bool operator==(const PostProcessor&) const = default;

  // Nothing where it is null. A feature that is not known is an error that names it.
  static Result<PostProcessor> from_json(simdjson::dom::element json);
};

}  // namespace baton::tokenizer
