// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/lexer.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/lexer_literals.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::jinja {
namespace {

// Every kind of line end becomes \n, and one at the very end goes.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool all_space(std::string_view text) { return strip_left(text).empty(); }

constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  std::vector<Token> tokens() && {
    while (!rest_.empty()) root();
    add(TokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, then the tag.
  void root() {
    std::size_t at = 0;
    while (true) {
      at = rest_.find('{', at);
      if (at == rest_.npos) break;
      const char next = at + 1 < rest_.size() ? rest_[at + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') break;
      ++at;
    }
    if (at == rest_.npos) {
      data(rest_);
      take(rest_.size());
      return;
    }
    const std::string_view text = rest_.substr(0, at);
    const char opening = rest_[at + 1];
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    data(trimmed(text, opening, sign));
    take(at);
    if (opening == '%' && raw()) return;
    take(sign == '-' || sign == '+' ? 3 : 2);
    line_starting_ = false;
    if (opening == '#') {
      comment();
    } else {
      expression(opening == '%');
    }
  }

  // Without the white space that a tag behind the text takes away.
  std::string_view trimmed(std::string_view text, char opening, char sign) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || opening == '{') return text;
    const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    const bool at_line_start = line > 0 || line_starting_;
    return at_line_start && all_space(text.substr(line)) ? text.substr(0, line) : text;
  }

  void comment() {
    const std::size_t end = rest_.find("#}");
    if (end == rest_.npos) raise("line {}: Missing end of comment tag", line_);
    const char sign = end > 0 ? rest_[end - 1] : '\0';
    take(end + 2);
    after_tag(sign);
  }

  // White space behind a closing tag: all of it after a minus, else one newline, none after a plus.
  void after_tag(char sign) {
    line_starting_ = false;
    if (sign == '-') {
      const std::size_t space = rest_.size() - strip_left(rest_).size();
      if (space > 0) line_starting_ = rest_[space - 1] == '\n';
      take(space);
    } else if (sign != '+' && rest_.starts_with('\n')) {
      take(1);
      line_starting_ = true;
    }
  }

  // {% raw %} … {% endraw %}, if that is what stands here.
  bool raw() {
    std::string_view at = rest_.substr(2);
    if (at.starts_with('-') || at.starts_with('+')) at.remove_prefix(1);
    at = strip_left(at);
    if (!at.starts_with("raw")) return false;
    at = strip_left(at.substr(3));
    const bool strips = at.starts_with('-');
    if (strips) at.remove_prefix(1);
    if (!at.starts_with("%}")) return false;
    at.remove_prefix(2);
    if (strips) at = strip_left(at);
    take(rest_.size() - at.size());
    line_starting_ =
        source_.size() > rest_.size() && source_[source_.size() - rest_.size() - 1] == '\n';
    for (std::size_t from = 0;;) {
      const std::size_t begin = rest_.find("{%", from);
      if (begin == rest_.npos) raise("line {}: Missing end of raw directive", line_);
      std::string_view tag = rest_.substr(begin + 2);
      const char sign = tag.empty() ? '\0' : tag.front();
      if (sign == '-' || sign == '+') tag.remove_prefix(1);
      tag = strip_left(tag);
      char end_sign = '\0';
      if (tag.starts_with("endraw")) {
        tag = strip_left(tag.substr(6));
        if (tag.starts_with('-') || tag.starts_with('+')) {
          end_sign = tag.front();
          tag.remove_prefix(1);
        }
        if (tag.starts_with("%}")) {
          data(trimmed(rest_.substr(0, begin), '%', sign));
          take(rest_.size() - tag.size() + 2);
          after_tag(end_sign);
          return true;
        }
      }
      from = begin + 2;
    }
  }

  // The tokens of one {{ }} or {% %}.
  void expression(bool block) {
    add(block ? TokenKind::BlockBegin : TokenKind::VariableBegin, "");
    const std::string_view closing = block ? "%}" : "}}";
    std::string open_brackets;
    while (true) {
      take(rest_.size() - strip_left(rest_).size());
      if (rest_.empty()) return;  // the parser says what is missing
      if (open_brackets.empty() && ends(closing, block)) return;
      token(open_brackets);
    }
  }

  bool ends(std::string_view closing, bool block) {
    const char sign = rest_.front();
    const bool signed_end =
        (sign == '-' || (sign == '+' && block)) && rest_.substr(1).starts_with(closing);
    if (!signed_end && !rest_.starts_with(closing)) return false;
    add(block ? TokenKind::BlockEnd : TokenKind::VariableEnd, "");
    take(closing.size() + (signed_end ? 1 : 0));
    if (block || signed_end) {
      after_tag(signed_end ? sign : '\0');
    } else {
      line_starting_ = false;
    }
    return true;
  }

  void token(std::string& open_brackets) {
    const std::size_t at = source_.size() - rest_.size();
    const bool after_dot = at > 0 && source_[at - 1] == '.';
    if (const auto number = read_number(rest_, after_dot); number.size > 0) {
      add(number.is_float ? TokenKind::Float : TokenKind::Integer, rest_.substr(0, number.size));
      tokens_.back().number = number.value;
      take(number.size);
      return;
    }
    if (const std::size_t size = name_size(rest_); size > 0) {
      add(TokenKind::Name, rest_.substr(0, size));
      take(size);
      return;
    }
    if (rest_.front() == '"' || rest_.front() == '\'') {
      if (const std::size_t size = string_size(rest_); size > 0) {
        add(TokenKind::String, "");
        auto text = unescaped(rest_.substr(1, size - 2));
        if (!text) raise("line {}: a string has an escape that cannot be read", line_);
        tokens_.back().text = *std::move(text);
        take(size);
        return;
      }
    }
    const auto* op =
        std::ranges::find_if(kOperators, [&](auto each) { return rest_.starts_with(each); });
    if (op == kOperators.end()) {
      std::string_view after = rest_;
      take_code_point(after);
      raise("line {}: unexpected char {} at {}", line_,
            in_quotes(rest_.substr(0, rest_.size() - after.size())),
            count_code_points(std::string_view(source_).substr(0, source_.size() - rest_.size())));
    }
    balance(*op, open_brackets);
    add(TokenKind::Operator, *op);
    take(op->size());
  }

  void balance(std::string_view op, std::string& open_brackets) const {
    if (op == "(") open_brackets += ')';
    if (op == "[") open_brackets += ']';
    if (op == "{") open_brackets += '}';
    if (op != ")" && op != "]" && op != "}") return;
    if (open_brackets.empty()) raise("line {}: unexpected '{}'", line_, op);
    if (open_brackets.back() != op[0]) {
      raise("line {}: unexpected '{}', expected '{}'", line_, op, open_brackets.back());
    }
    open_brackets.pop_back();
  }

  void data(std::string_view text) {
    if (!text.empty()) add(TokenKind::Data, text);
  }

  void add(TokenKind kind, std::string_view text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::string(text), .number = {}});
  }

  void take(std::size_t size) {
    line_ += static_cast<int>(std::ranges::count(rest_.substr(0, size), '\n'));
    rest_.remove_prefix(size);
  }

  const std::string source_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::string Token::description() const {
  switch (kind) {
    case TokenKind::Data:
      return "template data / text";
    case TokenKind::VariableBegin:
      return "begin of print statement";
    case TokenKind::VariableEnd:
      return "end of print statement";
    case TokenKind::BlockBegin:
      return "begin of statement block";
    case TokenKind::BlockEnd:
      return "end of statement block";
    case TokenKind::String:
      return "string";
    case TokenKind::Integer:
      return "integer";
    case TokenKind::Float:
      return "float";
    case TokenKind::End:
      return "end of template";
    default:
      return text;
  }
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(with_plain_newlines(source)).tokens();
}

}  // namespace baton::jinja
