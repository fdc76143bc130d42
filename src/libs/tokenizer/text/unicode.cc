// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/unicode.h"

#include "libs/base64/base64.h"
#include "libs/tokenizer/text/unicode_data.h"

#include <algorithm>
#include <array>
#include <span>

namespace baton::tokenizer {
namespace {

// Reads the numbers that make_unicode_data.mjs packed.
class Unpacker {
 public:
  explicit Unpacker(std::string_view text) : bytes_(base64::decode(text).value()) {}

  bool more() const { return at_ < bytes_.size(); }
  std::uint32_t next() {
    std::uint32_t number = 0;
    for (unsigned shift = 0; more(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      number |= (byte & 0x7FU) << shift;
      if (byte < 0x80) {
        break;
      }
    }
    return number;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

CharSet unpack_set(std::string_view packed) {
  CharSet set;
  char32_t next = 0;
  for (Unpacker numbers(packed); numbers.more();) {
    const char32_t first = next + numbers.next();
    const char32_t last = first + numbers.next();
    set.add(first, last);
    next = last + 1;
  }
  return set;
}

std::unordered_map<char32_t, char32_t> unpack_map(std::string_view packed) {
  std::unordered_map<char32_t, char32_t> map;
  char32_t next = 0;
  for (Unpacker numbers(packed); numbers.more();) {
    char32_t code = next + numbers.next();
    const std::uint32_t stride = numbers.next();
    const std::uint32_t count = numbers.next();
    const std::uint32_t zigzag = numbers.next();
    const std::uint32_t difference = (zigzag & 1U) != 0 ? ~(zigzag >> 1) : zigzag >> 1;
    for (std::uint32_t i = 0; i < count; ++i, code += stride) {
      map[code] = code + difference;
    }
    next = code - stride + 1;
  }
  return map;
}

std::vector<CodePointTable::Run> unpack_runs(std::string_view packed_runs) {
  std::vector<CodePointTable::Run> runs;
  char32_t next = 0;
  for (Unpacker numbers(packed_runs); numbers.more();) {
    const std::uint32_t packed = numbers.next();
    const char32_t end = next + (packed >> 5);
    runs.push_back({next, end - 1, static_cast<std::uint8_t>(packed & 31U)});
    next = end;
  }
  return runs;
}

const std::vector<CodePointTable::Run>& kind_runs() {
  static const std::vector<CodePointTable::Run> kRuns = unpack_runs(unicode_data::kKinds);
  return kRuns;
}

struct KindName {
  std::string_view brief;
  std::string_view full;  // as property names are compared
  KindSet kinds;
};

constexpr auto kKindNames = std::to_array<KindName>({
    {"l", "letter", kAnyLetter},
    {"lu", "uppercaseletter", one_kind(CharKind::UppercaseLetter)},
    {"ll", "lowercaseletter", one_kind(CharKind::LowercaseLetter)},
    {"lt", "titlecaseletter", one_kind(CharKind::TitlecaseLetter)},
    {"lc", "casedletter", kind_range(CharKind::UppercaseLetter, CharKind::TitlecaseLetter)},
    {"lm", "modifierletter", one_kind(CharKind::ModifierLetter)},
    {"lo", "otherletter", one_kind(CharKind::OtherLetter)},
    {"m", "mark", kAnyMark},
    {"mn", "nonspacingmark", one_kind(CharKind::NonspacingMark)},
    {"mc", "spacingmark", one_kind(CharKind::SpacingMark)},
    {"me", "enclosingmark", one_kind(CharKind::EnclosingMark)},
    {"n", "number", kAnyNumber},
    {"nd", "decimalnumber", one_kind(CharKind::DecimalNumber)},
    {"nl", "letternumber", one_kind(CharKind::LetterNumber)},
    {"no", "othernumber", one_kind(CharKind::OtherNumber)},
    {"p", "punctuation", kAnyPunctuation},
    {"punct", "punct", kAnyPunctuation},
    {"pc", "connectorpunctuation", one_kind(CharKind::ConnectorPunctuation)},
    {"pd", "dashpunctuation", one_kind(CharKind::DashPunctuation)},
    {"ps", "openpunctuation", one_kind(CharKind::OpenPunctuation)},
    {"pe", "closepunctuation", one_kind(CharKind::ClosePunctuation)},
    {"pi", "initialpunctuation", one_kind(CharKind::InitialPunctuation)},
    {"pf", "finalpunctuation", one_kind(CharKind::FinalPunctuation)},
    {"po", "otherpunctuation", one_kind(CharKind::OtherPunctuation)},
    {"s", "symbol", kAnySymbol},
    {"sm", "mathsymbol", one_kind(CharKind::MathSymbol)},
    {"sc", "currencysymbol", one_kind(CharKind::CurrencySymbol)},
    {"sk", "modifiersymbol", one_kind(CharKind::ModifierSymbol)},
    {"so", "othersymbol", one_kind(CharKind::OtherSymbol)},
    {"z", "separator", kind_range(CharKind::SpaceSeparator, CharKind::ParagraphSeparator)},
    {"zs", "spaceseparator", one_kind(CharKind::SpaceSeparator)},
    {"zl", "lineseparator", one_kind(CharKind::LineSeparator)},
    {"zp", "paragraphseparator", one_kind(CharKind::ParagraphSeparator)},
    {"c", "other",
     kind_range(CharKind::Control, CharKind::Unassigned) | one_kind(CharKind::ControlSpace)},
    {"cc", "control", one_kind(CharKind::Control) | one_kind(CharKind::ControlSpace)},
    {"cf", "format", one_kind(CharKind::Format)},
    {"cs", "surrogate", one_kind(CharKind::Surrogate)},
    {"co", "privateuse", one_kind(CharKind::PrivateUse)},
    {"cn", "unassigned", one_kind(CharKind::Unassigned)},
    {"whitespace", "space", kAnySpace},
});

CharSet set_of(std::vector<char32_t> codes) {
  std::ranges::sort(codes);
  CharSet set;
  for (const char32_t code : codes) {
    set.add(code, code);
  }
  return set;
}

std::string comparable_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      result.push_back(static_cast<char>(c - 'A' + 'a'));
    } else if (c != ' ' && c != '_' && c != '-') {
      result.push_back(c);
    }
  }
  return result;
}

}  // namespace

const CodePointTable& kind_table() {
  static const CodePointTable kTable{kind_runs()};
  return kTable;
}

const CodePointTable& grapheme_table() {
  static const CodePointTable kTable{unpack_runs(unicode_data::kGraphemeKinds)};
  return kTable;
}

CharSet kind_members(KindSet kinds) {
  CharSet set;
  for (const CodePointTable::Run& run : kind_runs()) {
    if ((kinds >> run.value & 1U) != 0) {
      set.add(run.first, run.last);
    }
  }
  return set;
}

std::optional<CharSet> property_set(std::string_view name) {
  const std::string wanted = comparable_name(name);
  for (const KindName& known : kKindNames) {
    if (wanted == known.brief || wanted == known.full) {
      return kind_members(known.kinds);
    }
  }
  if (wanted == "any") {
    return CharSet::all();
  }
  for (const auto& [set_name, members] :
       std::span(unicode_data::kNamedSets, unicode_data::kNamedSetCount)) {
    if (wanted == set_name) {
      return unpack_set(members);
    }
  }
  return std::nullopt;
}

const CharSet& white_space() {
  static const CharSet kSet = kind_members(kAnySpace);
  return kSet;
}

const CharSet& word_characters() {
  static const CharSet kSet = [] {
    CharSet set = kind_members(kAnyMark | one_kind(CharKind::DecimalNumber) |
                               one_kind(CharKind::ConnectorPunctuation));
    set.add(*property_set("Alphabetic"));
    return set;
  }();
  return kSet;
}

CharSet rust_numeric() { return unpack_set(unicode_data::kRustNumeric); }

CharSet unicode8_punctuation() {
  CharSet set = unpack_set(unicode_data::kUnicode8Punctuation);
  set.add({{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}});
  return set;
}

CharSet unicode8_nonspacing_mark() { return unpack_set(unicode_data::kUnicode8NonspacingMark); }
CharSet unicode8_control() { return unpack_set(unicode_data::kUnicode8Control); }
CharSet unicode9_mark() { return unpack_set(unicode_data::kUnicode9Mark); }
CharSet not_in_unicode9() { return unpack_set(unicode_data::kNotInUnicode9); }

CharSet unsafe_for(NormalForm form) {
  switch (form) {
    case NormalForm::C:
      return unpack_set(unicode_data::kUnsafeNFC);
    case NormalForm::D:
      return unpack_set(unicode_data::kUnsafeNFD);
    case NormalForm::Kc:
      return unpack_set(unicode_data::kUnsafeNFKC);
    case NormalForm::Kd:
      break;
  }
  return unpack_set(unicode_data::kUnsafeNFKD);
}

const CaseMaps& CaseMaps::instance() {
  static const CaseMaps kMaps;
  return kMaps;
}

CaseMaps::CaseMaps()
    : lower_(unpack_map(unicode_data::kLowercase)), fold_(unpack_map(unicode_data::kCaseFolding)) {
  for (const auto& [from, to] : fold_) {
    unfold_[to].push_back(from);
  }
  for (Unpacker numbers(unicode_data::kLongCaseFolding); numbers.more();) {
    std::u32string& folded = long_folds_[numbers.next()];
    for (std::uint32_t count = numbers.next(); count > 0; --count) {
      folded.push_back(numbers.next());
    }
  }
}

char32_t CaseMaps::lower(char32_t code) const {
  const auto found = lower_.find(code);
  return found == lower_.end() ? code : found->second;
}

char32_t CaseMaps::fold(char32_t code) const {
  const auto found = fold_.find(code);
  return found == fold_.end() ? code : found->second;
}

CharSet CaseMaps::with_lower() const {
  std::vector<char32_t> codes;
  for (const auto& [code, lower] : lower_) {
    codes.push_back(code);
  }
  return set_of(std::move(codes));
}

CharSet CaseMaps::closure(const CharSet& set) const {
  std::vector<char32_t> relatives;
  for (const auto& [folded, others] : unfold_) {
    const auto is_member = [&](char32_t code) { return set.contains(code); };
    if (is_member(folded) || std::ranges::any_of(others, is_member)) {
      relatives.push_back(folded);
      relatives.insert(relatives.end(), others.begin(), others.end());
    }
  }
  CharSet result = set_of(std::move(relatives));
  result.add(set);
  return result;
}

}  // namespace baton::tokenizer
