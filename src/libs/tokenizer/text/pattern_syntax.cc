// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pattern_syntax.h"

#include "libs/tokenizer/text/char_class.h"
#include "libs/tokenizer/text/pattern_reader.h"
#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace baton::tokenizer {
namespace {

constexpr int kDeepestPattern = 100;
constexpr unsigned kMaxRepeat = 65535;  // PCRE2's own limit

struct Options {
  bool ignore_case = false;
  bool dot_matches_newline = false;
};

// Turns the pattern into parts as it reads it: PCRE2 writes groups and repeats as Oniguruma does.
class Translator {
 public:
  Translator(std::string_view pattern, Dialect dialect) : reader_(pattern, dialect) {}

  Result<PatternParts> run() {
    if (auto read = alternatives({}, 0); !read) {
      return fail(read.error());
    }
    if (!reader_.at_end()) {
      return reader_.refuse("a ')' without its '('");
    }
    return std::move(result_);
  }

 private:
  using Done = Result<void>;

  // Reads up to the end or the ')' that closes the group.
  Done alternatives(Options options, int depth) {
    if (depth > kDeepestPattern) {
      return reader_.refuse("groups nested too deeply");
    }
    while (!reader_.at_end() && reader_.peek() != ')') {
      if (reader_.skip('|')) {
        literals_.clear();
        syntax("|");
        continue;
      }
      if (auto read = term(options, depth); !read) {
        return read;
      }
    }
    return {};
  }

  Done term(Options& options, int depth) {
    const std::size_t start = result_.parts.size();
    bool repeatable = true;
    const char32_t c = reader_.next();
    Done read;
    switch (c) {
      case '(':
        return group(options, depth, start);
      case '[':
        read = char_class(options);
        break;
      case '\\':
        read = escape(options, repeatable);
        break;
      case '.':
        set(options.dot_matches_newline ? CharSet::all() : CharSet::of('\n').complement());
        break;
      case '^':
        repeatable = false;
        line_start();
        break;
      case '$':
        repeatable = false;
        line_end();
        break;
      case '*':
      case '+':
      case '?':
        return reader_.refuse("a repeat of nothing");
      default:
        read = literal(c, options);
    }
    if (!read) {
      return read;
    }
    return repeats(start, repeatable);
  }

  // Behind '('. Options alone, as in (?i), hold for the rest of the group around them, all its
  // alternatives included.
  Done group(Options& options, int depth, std::size_t start) {
    Options inner = options;
    std::string_view opening = "(?:";
    if (reader_.skip('?')) {
      if (reader_.skip('#')) {
        return comment();
      }
      if (const auto known = group_opening()) {
        opening = *known;
      } else if (auto read = group_options(inner); !read) {
        return fail(read.error());
      } else if (reader_.skip(')')) {
        return rest_of_group(options, inner, depth);
      } else if (!reader_.skip(':')) {
        return reader_.refuse("an unknown kind of group");
      }
    }
    syntax(std::string(opening));
    if (auto read = alternatives(inner, depth + 1); !read) {
      return read;
    }
    if (!reader_.skip(')')) {
      return reader_.refuse("a '(' without its ')'");
    }
    syntax(")");
    const bool looks =
        opening.starts_with("(?=") || opening.starts_with("(?!") || opening.starts_with("(?<");
    return repeats(start, !looks);
  }

  Done rest_of_group(Options& options, Options inner, int depth) {
    if (reader_.dialect() == Dialect::FancyRegex) {  // there, alternatives stay as they are
      options = inner;
      return {};
    }
    syntax("(?:");
    if (auto read = alternatives(inner, depth + 1); !read) {
      return read;
    }
    syntax(")");
    return {};
  }

  Done comment() {
    while (!reader_.at_end()) {
      if (reader_.next() == ')') {
        return {};
      }
    }
    return reader_.refuse("a comment without its end");
  }

  // Reads the text between "(?" and the content, except options. Names of groups do not matter:
  // nothing refers to them.
  std::optional<std::string_view> group_opening() {
    static constexpr std::string_view kSame[] = {"=", "!", "<=", "<!", ">"};
    static constexpr std::string_view kOpening[] = {"(?=", "(?!", "(?<=", "(?<!", "(?>"};
    for (std::size_t i = 0; i < std::size(kSame); ++i) {
      if (reader_.skip(kSame[i])) {
        return kOpening[i];
      }
    }
    if (reader_.skip_group_name()) {
      return "(?:";
    }
    return std::nullopt;
  }

  Done group_options(Options& options) {
    bool on = true;
    while (!reader_.at_end() && reader_.peek() != ')' && reader_.peek() != ':') {
      const char32_t c = reader_.next();
      if (c == '-') {
        on = false;
      } else if (c == 'i') {
        options.ignore_case = on;
      } else if (c == (reader_.dialect() == Dialect::Oniguruma ? U'm' : U's')) {
        options.dot_matches_newline = on;
      } else {
        std::string name;
        append_utf8(name, c);
        return reader_.refuse(fmt::format("the group kind or option '{}'", name));
      }
    }
    return {};
  }

  Done char_class(const Options& options) {
    literals_.clear();
    auto read = read_char_class(reader_, options.ignore_case);
    if (!read) {
      return fail(read.error());
    }
    set(std::move(*read));
    return {};
  }

  Done escape(const Options& options, bool& repeatable) {
    if (reader_.at_end()) {
      return reader_.refuse("a '\\' at the end");
    }
    auto read = read_escape(reader_);
    if (!read) {
      return fail(read.error());
    }
    if (const auto* literal_code = std::get_if<char32_t>(&*read)) {
      return literal(*literal_code, options);
    }
    literals_.clear();
    if (auto* escaped_set = std::get_if<CharSet>(&*read)) {
      set(std::move(*escaped_set));
      return {};
    }
    repeatable = false;
    switch (std::get<Anchor>(*read)) {
      case Anchor::TextStart:
        syntax("\\A");
        break;
      case Anchor::TextEnd:
        syntax("\\z");
        break;
      case Anchor::LastLineEnd:
        syntax("(?=");
        set(CharSet::of('\n'));
        syntax("?\\z)");
        break;
      case Anchor::WordBoundary:
        word_boundary("(?!", "(?=");
        break;
      case Anchor::NoWordBoundary:
        word_boundary("(?=", "(?!");
        break;
    }
    return {};
  }

  void word_boundary(const char* behind_word, const char* behind_other) {
    const CharSet word = lone_word_set(reader_.dialect());
    syntax("(?:(?<=");
    set(word);
    syntax(std::string(")") + behind_word);
    set(word);
    syntax(")|(?<!");
    set(word);
    syntax(std::string(")") + behind_other);
    set(word);
    syntax("))");
  }

  // Oniguruma's '^' and '$' look at lines always, but there is no line behind the last line's end.
  void line_start() {
    literals_.clear();
    if (reader_.dialect() == Dialect::FancyRegex) {
      syntax("\\A");
      return;
    }
    syntax("(?:\\A|(?<=");
    set(CharSet::of('\n'));
    syntax(")(?!\\z))");
  }

  void line_end() {
    literals_.clear();
    if (reader_.dialect() == Dialect::FancyRegex) {
      syntax("\\z");
      return;
    }
    syntax("(?:(?=");
    set(CharSet::of('\n'));
    syntax(")|\\z)");
  }

  Done literal(char32_t code, const Options& options) {
    if (!options.ignore_case) {
      literals_.clear();
      set(CharSet::of(code));
      return {};
    }
    const CaseMaps& maps = CaseMaps::instance();
    literals_.push_back(maps.fold(code));
    if (reader_.dialect() == Dialect::Oniguruma) {
      const bool is_long = std::ranges::any_of(maps.long_folds(), [&](const auto& fold) {
        return fold.first == code || literals_.ends_with(fold.second);
      });
      if (is_long) {
        return reader_.refuse(
            "letters without case of which several equal one, like ss and U+00DF");
      }
    }
    set(maps.closure(CharSet::of(code)));
    return {};
  }

  // Quantifiers behind what begins at `start`. Oniguruma has no possessive {n,m}+: that is a repeat
  // of the repeat.
  Done repeats(std::size_t start, bool repeatable) {
    for (bool first = true;; first = false) {
      auto read = reader_.read_repeat();
      if (!read) {
        return fail(read.error());
      }
      if (!*read) {
        return {};
      }
      literals_.clear();
      const Repeat& repeat = **read;
      if (!repeatable) {
        return reader_.refuse("a repeat of a place in the text");
      }
      if (repeat.min > kMaxRepeat || (repeat.max != Repeat::kNoLimit && repeat.max > kMaxRepeat)) {
        return reader_.refuse("a repeat count above 65535");
      }
      if (!first) {
        result_.parts.insert(result_.parts.begin() + static_cast<std::ptrdiff_t>(start),
                             {.syntax = "(?:"});
        syntax(")");
      }
      syntax(repeat.to_pcre2());
    }
  }

  void syntax(std::string text) { result_.parts.push_back({.syntax = std::move(text)}); }

  void set(CharSet chars) {
    const auto known = std::ranges::find(result_.sets, chars);
    const auto place = static_cast<std::size_t>(known - result_.sets.begin());
    if (known == result_.sets.end()) {
      result_.sets.push_back(std::move(chars));
    }
    result_.parts.push_back({.syntax = {}, .set = place});
  }

  PatternReader reader_;
  PatternParts result_;
  std::u32string literals_;  // without case, next to each other, be it in groups
};

}  // namespace

Result<PatternParts> take_apart(std::string_view pattern, Dialect dialect) {
  return Translator(pattern, dialect).run();
}

}  // namespace baton::tokenizer
