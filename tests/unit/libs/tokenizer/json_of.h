// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {

// A parsed text that lives as long as the object.
class JsonOf {
 public:
  explicit JsonOf(std::string_view text) : text_(text), root_(parser_.parse(text_).value()) {}
  operator simdjson::dom::element() const { return root_; }

 private:
  simdjson::padded_string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

}  // namespace baton::tokenizer
