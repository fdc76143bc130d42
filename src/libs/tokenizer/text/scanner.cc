// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/scanner.h"

#include "libs/tokenizer/text/scan_ahead.h"

#include <string>

namespace baton::tokenizer {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr KindSet kLettersAndMarks = kAnyLetter | kAnyMark;

// 's 't 're 've 'm 'll 'd; null where none of them is at `place`.
template <bool kIgnoreCase>
const char* skip_contraction(const Ahead& text, const char* place) {
  const auto rest = text.end() - place;
  if (rest < 2 || *place != '\'') {
    return nullptr;
  }
  const auto letter = [](char c) {
    return kIgnoreCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(place[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return place + 2;
  }
  if (rest < 3) {
    return nullptr;
  }
  const char second = letter(place[2]);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l')) {
    return place + 3;
  }
  if (kIgnoreCase && place[1] == '\xC5' && place[2] == '\xBF') {  // U+017F, a long s
    return place + 3;
  }
  return nullptr;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ or, without lines, the last two of them. Requires: white space.
template <bool kLines>
const char* skip_space(const Ahead& text, const char* place) {
  const char* last = place;  // the last character of the run
  const char* behind_line = nullptr;
  const char* at = place;
  while (at != text.end()) {
    const auto [kind, size] = text.at(at);
    if ((kind & kAnySpace) == 0) {
      break;
    }
    last = at;
    at += size;
    if (kLines && is_newline(*last)) {
      behind_line = at;
    }
  }
  if (behind_line != nullptr) {
    return behind_line;
  }
  // A space in front of a word is left to it.
  return at == text.end() || last == place ? at : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2Rules {
  static constexpr bool kCoversAll = true;
  const char* next(const Ahead& text, const char* place) const {
    if (const char* end = skip_contraction<false>(text, place)) {
      return end;
    }
    const char* const word = *place == ' ' ? place + 1 : place;
    const KindSet kind = text.at(word).kind;
    if ((kind & kAnyLetter) != 0) {
      return text.skip<kAnyLetter>(word);
    }
    if ((kind & kAnyNumber) != 0) {
      return text.skip<kAnyNumber>(word);
    }
    if ((kind & kAnySpace) == 0 && kind != 0) {
      return text.skip < kEveryKind & ~(kAnySpace | kAnyLetter | kAnyNumber) > (word);
    }
    return skip_space<false>(text, place);
  }
};

// The part that the cl100k and o200k families share:
// \p{N}{1,most}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+, or with [\r\n/]*. kWord is what
// words are made of: letters, or letters and marks.
template <KindSet kWord>
struct SharedRules {
  static constexpr KindSet kOther = kEveryKind & ~(kAnySpace | kWord | kAnyNumber);

  unsigned most_digits;
  bool slashes;

  const char* next(const Ahead& text, const char* place) const {
    const KindSet kind = text.at(place).kind;
    if ((kind & kAnyNumber) != 0) {
      return text.skip_at_most(place, kAnyNumber, most_digits);
    }
    const char* const word = *place == ' ' ? place + 1 : place;
    if (text.is(word, kOther)) {
      const char* const end = text.skip<kOther>(word);
      return slashes ? text.skip_bytes(end, [](char c) { return is_newline(c) || c == '/'; })
                     : text.skip_bytes(end, is_newline);
    }
    return skip_space<true>(text, place);
  }
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+| and the shared part; words may have marks.
template <KindSet kWord>
struct Cl100kRules {
  static constexpr bool kCoversAll = true;
  bool contractions;
  SharedRules<kWord> shared;

  const char* next(const Ahead& text, const char* place) const {
    if (contractions) {
      if (const char* end = skip_contraction<true>(text, place)) {
        return end;
      }
    }
    const auto [kind, size] = text.at(place);
    if ((kind & kWord) != 0) {
      return text.skip<kWord>(place);
    }
    if ((kind & kAnyNumber) == 0 && !is_newline(*place) && text.is(place + size, kWord)) {
      return text.skip<kWord>(place + size);
    }
    return shared.next(text, place);
  }
};

// [^\r\n\p{L}\p{N}]?[U]*[W]+(suffix)?|[^\r\n\p{L}\p{N}]?[U]+[W]*(suffix)?| and the shared part. U is
// every letter and mark but lower case, W every one but upper and title case.
struct O200kRules {
  static constexpr bool kCoversAll = true;
  bool contractions;
  SharedRules<kAnyLetter> shared;

  static constexpr KindSet kUpper =
      one_kind(CharKind::UppercaseLetter) | one_kind(CharKind::TitlecaseLetter);
  static constexpr KindSet kLower = one_kind(CharKind::LowercaseLetter);
  static constexpr KindSet kCaseless =
      one_kind(CharKind::ModifierLetter) | one_kind(CharKind::OtherLetter) | kAnyMark;

  const char* next(const Ahead& text, const char* place) const {
    const char* const end = skip_word(text, place);
    if (end == nullptr) {
      return shared.next(text, place);
    }
    if (contractions) {
      if (const char* longer = skip_contraction<true>(text, end)) {
        return longer;
      }
    }
    return end;
  }

  static const char* skip_word(const Ahead& text, const char* place) {
    // Most words are these.
    const char* const low = *place == ' ' ? place + 1 : place;
    if (low != text.end() && *low >= 'a' && *low <= 'z') {
      return text.skip<(kLower | kCaseless)>(low);
    }
    const auto [kind, size] = text.at(place);
    const bool may_lead = (kind & (kAnyLetter | kAnyNumber)) == 0 && !is_newline(*place);
    const char* const behind = may_lead ? place + size : place;
    const char* end = ends_low(text, behind);
    if (end == nullptr && may_lead) {
      end = ends_low(text, place);
    }
    if (end == nullptr) {
      const char* const capitals = text.skip<(kUpper | kCaseless)>(behind);
      end = capitals == behind ? nullptr : capitals;
    }
    return end;
  }

  // [U]*[W]+. If no lower case letter follows the U, they are given back until one of them is among
  // the W, too.
  static const char* ends_low(const Ahead& text, const char* place) {
    const char* behind_caseless = nullptr;
    const char* at = place;
    while (at != text.end()) {
      const auto [kind, size] = text.at(at);
      if ((kind & (kUpper | kCaseless)) == 0) {
        break;
      }
      at += size;
      if ((kind & kCaseless) != 0) {
        behind_caseless = at;
      }
    }
    return text.is(at, kLower) ? text.skip<(kLower | kCaseless)>(at) : behind_caseless;
  }
};

// DeepSeek's: an ASCII punctuation mark and letters | one other character and letters | punctuation
// and symbols | lines and spaces. Numbers and some more are in none of them.
struct DeepSeekRules {
  static constexpr bool kCoversAll = false;
  static constexpr KindSet kMarks = kAnyPunctuation | kAnySymbol;
  static constexpr KindSet kWord = kLettersAndMarks;

  static bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  const char* next(const Ahead& text, const char* place) const {
    const auto [kind, size] = text.at(place);
    const char* const behind = place + size;
    if ((kind & kMarks) != 0 && static_cast<std::uint8_t>(*place) < 0x80 && behind != text.end() &&
        is_ascii_letter(*behind)) {
      return text.skip_bytes(behind, is_ascii_letter);
    }
    if ((kind & kWord) != 0) {
      return text.skip<kWord>(place);
    }
    if ((kind & kMarks) == 0 && !is_newline(*place) && text.is(behind, kWord)) {
      return text.skip<kWord>(behind);
    }
    const char* const mark = *place == ' ' ? behind : place;
    if (text.is(mark, kMarks)) {
      return text.skip_bytes(text.skip<kMarks>(mark), is_newline);
    }
    return (kind & kAnySpace) != 0 ? skip_space<true>(text, place) : nullptr;
  }
};

// Role. Goes through a text by rules that know one pattern. `next` is given the place of a
//   character; null means that no match begins there.
template <class Rules>
class Scanner : public Matcher {
 public:
  explicit Scanner(Rules rules) : rules_(rules) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const char* const start = text.data();
    scan(text, [&](const char* begin, const char* end) {
      matches.push_back(
          {static_cast<std::size_t>(begin - start), static_cast<std::size_t>(end - start)});
    });
  }

  bool isolate(std::string_view text, std::vector<std::string_view>& pieces) const override {
    const char* done = text.data();
    scan(text, [&](const char* begin, const char* end) {
      if (!Rules::kCoversAll && begin != done) {
        pieces.emplace_back(done, begin);
      }
      pieces.emplace_back(begin, end);
      done = end;
    });
    if (const char* const end = text.data() + text.size(); done != end) {
      pieces.emplace_back(done, end);
    }
    return true;
  }

  bool covers_all() const override { return Rules::kCoversAll; }
  // For all rules: letters and spaces are always matched, a match with a letter never goes on with a
  // space, and what a rule looks at behind a letter is a letter or none of its business. None looks
  // back.
  bool cuts_between_words() const override { return true; }

 private:
  template <class Found>
  void scan(std::string_view text, Found found) const {
    const Ahead ahead(text, kind_table());
    for (const char* at = text.data(); at != ahead.end();) {
      const char* const end = rules_.next(ahead, at);
      if (!Rules::kCoversAll && end == nullptr) {
        at += utf8_size(*at);
        continue;
      }
      found(at, end);
      at = end;
    }
  }

  Rules rules_;
};

template <class Rules>
std::unique_ptr<const Matcher> scan_by(Rules rules) {
  return std::make_unique<const Scanner<Rules>>(rules);
}

// Line ends are written as they are or escaped.
std::string with_escaped_lines(std::string_view pattern) {
  std::string result;
  for (const char c : pattern) {
    if (c == '\r') {
      result += "\\r";
    } else if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr std::string_view kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr std::string_view kDeepSeekPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string shared_pattern(std::string_view digits, bool marks, bool slashes) {
  return std::string(digits) + R"(| ?[^\s\p{L})" + (marks ? R"(\p{M})" : "") + R"(\p{N}]+)" +
         (slashes ? R"([\r\n/]*)" : R"([\r\n]*)") + R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

std::string cl100k_pattern(bool contractions, bool marks, std::string_view shared) {
  std::string pattern;
  if (contractions) {
    pattern.append(kContractions).append("|");
  }
  pattern += R"([^\r\n\p{L}\p{N}]?)";
  return pattern.append(marks ? R"([\p{L}\p{M}]+|)" : R"(\p{L}+|)").append(shared);
}

std::string o200k_pattern(bool contractions, std::string_view shared) {
  const std::string suffix = contractions ? std::string(kContractions) + "?" : "";
  return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" +
         suffix +
         R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" +
         suffix + "|" + std::string(shared);
}

}  // namespace

std::unique_ptr<const Matcher> scanner_for(std::string_view pattern) {
  const std::string wanted = with_escaped_lines(pattern);
  if (wanted == kGpt2Pattern) {
    return scan_by(Gpt2Rules{});
  }
  if (wanted == kDeepSeekPattern) {
    return scan_by(DeepSeekRules{});
  }
  struct Digits {
    std::string_view pattern;
    unsigned most;
  };
  for (const auto& [digits, most] : {Digits{R"(\p{N})", 1}, Digits{R"(\p{N}{1,3})", 3},
                                     Digits{R"(\p{N}+)", static_cast<unsigned>(-1)}}) {
    for (const bool slashes : {false, true}) {
      for (const bool contractions : {false, true}) {
        const std::string shared = shared_pattern(digits, false, slashes);
        const SharedRules<kAnyLetter> rules{.most_digits = most, .slashes = slashes};
        if (wanted == cl100k_pattern(contractions, false, shared)) {
          return scan_by(Cl100kRules<kAnyLetter>{.contractions = contractions, .shared = rules});
        }
        if (wanted == o200k_pattern(contractions, shared)) {
          return scan_by(O200kRules{.contractions = contractions, .shared = rules});
        }
        if (wanted == cl100k_pattern(contractions, true, shared_pattern(digits, true, slashes))) {
          return scan_by(Cl100kRules<kLettersAndMarks>{
              .contractions = contractions, .shared = {.most_digits = most, .slashes = slashes}});
        }
      }
    }
  }
  return nullptr;
}

}  // namespace baton::tokenizer
