// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::jinja {

enum class TokenKind : std::uint8_t {
  Data,
  VariableBegin,
  VariableEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  int line = 1;
  std::string text;  // the name, the operator, the text without quotes and escapes
  Value number;      // of an integer or a float

  bool is(std::string_view op) const { return kind == TokenKind::Operator && text == op; }
  bool names(std::string_view name) const { return kind == TokenKind::Name && text == name; }
  std::string description() const;
};

// Cuts a template into tokens as jinja2's lexer does with trim_blocks and lstrip_blocks: text without
// the white space that tags take away, comments left out, escapes in strings undone. The last token
// is an End. Raises a Failure that names the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace baton::jinja
