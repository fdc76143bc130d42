// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/char_class.h"

#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace baton::tokenizer {
namespace {

constexpr int kDeepestClass = 100;

const CharSet kHexDigits{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};

CharSet word_set(Dialect dialect) {
  CharSet set = word_characters();
  if (dialect == Dialect::FancyRegex) {
    set.add(0x200C, 0x200D);
  }
  return set;
}

bool is_ascii_letter_or_digit(char32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
         (code >= 'A' && code <= 'Z');
}

// \s \d \w \h and their opposites in capitals.
std::optional<CharSet> shorthand_set(char32_t letter, Dialect dialect) {
  switch (letter) {
    case 's':
      return white_space();
    case 'd':
      return kind_members(one_kind(CharKind::DecimalNumber));
    case 'w':
      return word_set(dialect);
    case 'h':
      return dialect == Dialect::Oniguruma ? std::optional(kHexDigits) : std::nullopt;
    case 'S':
    case 'D':
    case 'W':
    case 'H': {
      const auto opposite = shorthand_set(letter - U'A' + U'a', dialect);
      return opposite ? std::optional(opposite->complement()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control_code(char32_t letter) {
  switch (letter) {
    case 't':
      return U'\t';
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 'f':
      return U'\f';
    case 'v':
      return U'\v';
    case 'a':
      return U'\a';
    case 'e':
      return 0x1B;
    default:
      return std::nullopt;
  }
}

// Behind \x or \u.
Result<char32_t> hex_code(PatternReader& reader, char32_t letter) {
  std::string digits;
  if (letter == 'x' && reader.skip('{')) {
    digits = reader.read_hex(8);
    if (!reader.skip('}')) {
      return reader.refuse("a \\x{ that is not one code point in hexadecimal");
    }
  } else {
    const std::size_t wanted = letter == 'x' ? 2 : 4;
    digits = reader.read_hex(wanted);
    if (digits.size() != wanted) {
      return reader.refuse("a \\x or \\u with too few hexadecimal digits");
    }
  }
  std::uint32_t code = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  // Above U+007F, \xHH is a byte to Oniguruma.
  const bool is_byte = letter == 'x' && digits.size() == 2 && code > 0x7F;
  if (digits.empty() || code > kLastCodePoint || (code >= 0xD800 && code <= 0xDFFF) || is_byte) {
    return reader.refuse(
        fmt::format("\\{}{} is not a code point", static_cast<char>(letter), digits));
  }
  return code;
}

// Behind \p or \P.
Result<CharSet> property(PatternReader& reader, bool negated) {
  if (!reader.skip('{')) {
    return reader.refuse("a \\p without {}");
  }
  if (reader.skip('^')) {
    negated = !negated;
  }
  const auto name = reader.read_until('}');
  if (!name) {
    return reader.refuse("a \\p{ without its }");
  }
  auto set = property_set(*name);
  if (!set) {
    return reader.refuse(fmt::format("the property \\p{{{}}}", *name));
  }
  return negated ? set->complement() : std::move(*set);
}

using ClassItem = std::variant<char32_t, CharSet>;

// Reads an escape that means the same inside and outside of brackets. Requires: one more character.
Result<ClassItem> shared_escape(PatternReader& reader) {
  const char32_t c = reader.next();
  if (const auto code = control_code(c)) {
    return *code;
  }
  if (auto set = shorthand_set(c, reader.dialect())) {
    return std::move(*set);
  }
  if (c == 'x' || c == 'u') {
    auto code = hex_code(reader, c);
    return code ? Result<ClassItem>(*code) : fail(code.error());
  }
  if (c == 'p' || c == 'P') {
    auto set = property(reader, c == 'P');
    return set ? Result<ClassItem>(std::move(*set)) : fail(set.error());
  }
  if (is_ascii_letter_or_digit(c)) {
    return reader.refuse(fmt::format("\\{}", static_cast<char>(c)));
  }
  return c;
}

struct PosixClass {
  std::string_view name;
  std::string_view property;  // as property_set knows it
};

std::optional<CharSet> posix_set(std::string_view name) {
  static constexpr auto kProperties = std::to_array<PosixClass>({{"alpha", "alphabetic"},
                                                                 {"cntrl", "cc"},
                                                                 {"digit", "nd"},
                                                                 {"lower", "lowercase"},
                                                                 {"space", "space"},
                                                                 {"upper", "uppercase"}});
  for (const PosixClass& known : kProperties) {
    if (name == known.name) {
      return property_set(known.property);
    }
  }
  if (name == "word") {
    return word_characters();
  }
  if (name == "punct") {
    return kind_members(kAnyPunctuation | kAnySymbol);
  }
  if (name == "graph" || name == "print") {
    constexpr KindSet kHidden = kAnySpace | one_kind(CharKind::Control) |
                                one_kind(CharKind::Surrogate) | one_kind(CharKind::Unassigned);
    CharSet visible = kind_members(kHidden).complement();
    if (name == "print") {
      visible.add(kind_members(one_kind(CharKind::SpaceSeparator)));
    }
    return visible;
  }
  if (name == "xdigit") {
    return kHexDigits;
  }
  if (name == "ascii") {
    return CharSet{{0, 0x7F}};
  }
  CharSet set;
  if (name == "blank") {
    set = *property_set("zs");
    set.add('\t', '\t');
  } else if (name == "alnum") {
    set = *property_set("alphabetic");
    set.add(*property_set("nd"));
  } else {
    return std::nullopt;
  }
  return set;
}

// Role. Reads the inside of brackets. Lifetime. One pair of brackets and those within.
class ClassReader {
 public:
  explicit ClassReader(PatternReader& reader) : reader_(reader) {}

  // `negated` tells whether the outermost brackets began with '^'; the set is without it.
  Result<CharSet> inside(int depth, bool& negated) {
    if (depth > kDeepestClass) {
      return reader_.refuse("brackets nested too deeply");
    }
    negated = reader_.skip('^');
    if (reader_.peek() == ']') {
      return reader_.refuse("a ']' right behind a '['; write \\]");
    }
    std::optional<CharSet> left;  // of the last &&
    CharSet current;
    while (!reader_.skip(']')) {
      if (reader_.at_end()) {
        return reader_.refuse("a '[' without its ']'");
      }
      if (reader_.skip("&&")) {
        left = left ? left->intersection(current) : current;
        current = {};
        continue;
      }
      if (auto read = member(current, depth); !read) {
        return fail(read.error());
      }
    }
    return left ? left->intersection(current) : current;
  }

 private:
  // A character, a range, a class.
  Result<void> member(CharSet& current, int depth) {
    auto first = item(depth);
    if (!first) {
      return fail(first.error());
    }
    const auto* start = std::get_if<char32_t>(&*first);
    const bool dash = reader_.peek() == '-' && reader_.peek(1) != ']';
    if (start == nullptr) {
      if (dash) {
        return reader_.refuse("a '-' behind a class in brackets; write \\-");
      }
      current.add(std::get<CharSet>(*first));
      return {};
    }
    if (!dash) {
      current.add(*start, *start);
      return {};
    }
    reader_.skip('-');
    if (reader_.at_end() || reader_.peek() == '[') {
      return reader_.refuse("a range in brackets without its end");
    }
    auto last = item(depth);
    if (!last) {
      return fail(last.error());
    }
    const auto* end = std::get_if<char32_t>(&*last);
    if (end == nullptr || *end < *start) {
      return reader_.refuse("a range in brackets that does not end behind its start");
    }
    current.add(*start, *end);
    if (reader_.peek() == '-' && reader_.peek(1) != ']') {
      return reader_.refuse("a '-' behind a range in brackets; write \\-");
    }
    return {};
  }

  Result<ClassItem> item(int depth) {
    const char32_t c = reader_.next();
    if (c == '[') {
      return nested(depth);
    }
    if (c != '\\') {
      return c;
    }
    if (reader_.at_end()) {
      return reader_.refuse("a '\\' at the end");
    }
    if (reader_.skip('b')) {
      return U'\b';
    }
    return shared_escape(reader_);
  }

  Result<ClassItem> nested(int depth) {
    if (reader_.skip(':')) {
      return posix_class();
    }
    bool negated = false;
    auto set = inside(depth + 1, negated);
    if (!set) {
      return fail(set.error());
    }
    return negated ? set->complement() : std::move(*set);
  }

  Result<ClassItem> posix_class() {
    const bool negated = reader_.skip('^');
    const auto name = reader_.read_until(':');
    if (!name || !reader_.skip(']')) {
      return reader_.refuse("a '[:' without its ':]'");
    }
    auto set = reader_.dialect() == Dialect::Oniguruma ? posix_set(*name) : std::nullopt;
    if (!set) {
      return reader_.refuse(fmt::format("the class [:{}:]", *name));
    }
    return negated ? set->complement() : std::move(*set);
  }

  PatternReader& reader_;
};

// Adds what differs in case only. Oniguruma lets some letters of a class stand for two of them.
Result<CharSet> without_case(PatternReader& reader, const CharSet& set, bool negated) {
  const CaseMaps& maps = CaseMaps::instance();
  CharSet closure = maps.closure(set);
  if (!negated && reader.dialect() == Dialect::Oniguruma) {
    const bool is_long = std::ranges::any_of(
        maps.long_folds(), [&](const auto& fold) { return closure.contains(fold.first); });
    if (is_long) {
      return reader.refuse(
          "a class without case of letters that equal several, like U+00DF and ss");
    }
  }
  return closure;
}

}  // namespace

CharSet lone_word_set(Dialect dialect) {
  CharSet set = word_set(dialect);
  if (dialect == Dialect::Oniguruma) {
    set.add({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
  }
  return set;
}

Result<std::variant<char32_t, CharSet, Anchor>> read_escape(PatternReader& reader) {
  const bool oniguruma = reader.dialect() == Dialect::Oniguruma;
  switch (reader.peek()) {
    case 'A':
      reader.next();
      return Anchor::TextStart;
    case 'z':
      reader.next();
      return Anchor::TextEnd;
    case 'Z':
      if (oniguruma) {
        reader.next();
        return Anchor::LastLineEnd;
      }
      break;
    case 'b':
      reader.next();
      return Anchor::WordBoundary;
    case 'B':
      reader.next();
      return Anchor::NoWordBoundary;
    case 'w':
      reader.next();
      return lone_word_set(reader.dialect());
    case 'W':
      reader.next();
      return lone_word_set(reader.dialect()).complement();
    default:
      break;
  }
  auto shared = shared_escape(reader);
  if (!shared) {
    return fail(shared.error());
  }
  return std::visit([](auto&& item) -> std::variant<char32_t, CharSet, Anchor> { return item; },
                    std::move(*shared));
}

Result<CharSet> read_char_class(PatternReader& reader, bool ignore_case) {
  bool negated = false;
  auto set = ClassReader(reader).inside(0, negated);
  if (!set) {
    return set;
  }
  if (ignore_case) {
    set = without_case(reader, *set, negated);
    if (!set) {
      return set;
    }
  }
  return negated ? set->complement() : std::move(*set);
}

}  // namespace baton::tokenizer
