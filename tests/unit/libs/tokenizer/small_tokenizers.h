// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/tokenizer.h"
#include "unit/libs/tokenizer/small_models.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

namespace baton::tokenizer {

inline std::shared_ptr<const Tokenizer> make(const SmallFile& file, std::string_view config = "") {
  auto made = Tokenizer::from_json(file.json(), config);
  if (!made) {
    ADD_FAILURE() << made.error().message();
    return nullptr;
  }
  return *made;
}

inline TokenIds ids_of(const Tokenizer& tokenizer, std::string_view text,
                       AddSpecial special = AddSpecial::No) {
  auto ids = tokenizer.encode(text, {.add_special = special});
  if (!ids) {
    ADD_FAILURE() << ids.error().message();
    return {};
  }
  return std::move(*ids);
}

}  // namespace baton::tokenizer
