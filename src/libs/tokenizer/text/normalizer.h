// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. Changes text before it is cut into pieces, as the `normalizer` of a tokenizer.json says.
// Confinement. Immutable; any thread.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Null where nothing is to be done (absent, null, an empty Sequence). A feature that is not known
  // is an error that names it.
  static Result<std::unique_ptr<const Normalizer>> from_json(simdjson::dom::element json);

  // The text as it is where nothing changes, or a part of it where ends are cut off (then `buffer`
  // is left alone), else what was made of it in `buffer`. Requires: valid UTF-8, not in `buffer`.
  virtual std::string_view apply(std::string_view text, std::string& buffer) const = 0;
};

}  // namespace baton::tokenizer
