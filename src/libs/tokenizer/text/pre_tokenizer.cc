// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pre_tokenizer.h"

#include "libs/tokenizer/text/json_fields.h"
#include "libs/tokenizer/text/make_matcher.h"
#include "libs/tokenizer/text/scanner.h"
#include "libs/tokenizer/text/simple_matchers.h"
#include "libs/tokenizer/text/split_steps.h"
#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <utility>
#include <vector>

namespace baton::tokenizer {
namespace {

constexpr int kDeepestPreTokenizer = 100;

constexpr KnownMembers kPreTokenizers[] = {
    {"BertPreTokenizer"},
    {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"CharDelimiterSplit", {"delimiter"}},
    {"Digits", {"individual_digits"}},
    {"FixedLength", {"length"}},
    {"Metaspace", {"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}},
    {"Punctuation", {"behavior"}},
    {"Sequence", {"pretokenizers"}},
    {"Split", {"pattern", "behavior", "invert"}},
    {"Whitespace"},
    {"WhitespaceSplit"},
};

// Role. The steps of a pre-tokenizer, each cutting what the one before it left.
class StepsPreTokenizer : public PreTokenizer {
 public:
  StepsPreTokenizer(std::vector<std::unique_ptr<const SplitStep>> steps, bool byte_level)
      : steps_(std::move(steps)), byte_level_(byte_level) {}

  void split(std::string_view text, Place place, Pieces& pieces) const override {
    if (text.empty()) {
      return;
    }
    if (steps_.empty()) {
      pieces.views.push_back(text);
      return;
    }
    if (steps_.size() == 1) {
      steps_[0]->run(text, place, pieces);
      return;
    }
    static thread_local std::vector<std::string_view> before;
    static thread_local std::vector<std::string_view> wanted;
    before.assign(1, text);
    wanted.swap(pieces.views);  // the steps write to an empty list
    pieces.views.clear();
    for (const auto& step : steps_) {
      for (const std::string_view piece : before) {
        // Changed pieces do not count as the beginning of the text; from_json makes sure that no
        // step needs to know.
        const bool first = place == Place::First && piece.data() == text.data();
        step->run(piece, first ? Place::First : Place::Later, pieces);
      }
      before.swap(pieces.views);
      pieces.views.clear();
    }
    wanted.swap(pieces.views);
    pieces.views.insert(pieces.views.end(), before.begin(), before.end());
  }

  bool byte_level() const override { return byte_level_; }
  bool cuts_between_words() const override {
    return steps_.size() == 1 && steps_[0]->cuts_between_words();
  }

 private:
  std::vector<std::unique_ptr<const SplitStep>> steps_;
  bool byte_level_;
};

// Role. Reads the `pre_tokenizer` of a tokenizer.json. Lifetime. One call.
class PreTokenizerBuilder {
 public:
  Result<void> add(simdjson::dom::element json, int depth = 0) {
    JsonFields fields(json, "pre-tokenizer");
    if (depth > kDeepestPreTokenizer) {
      fields.complain("is nested too deeply");
    }
    if (!fields.error()) {
      fields.only(kPreTokenizers);
    }
    if (fields.error()) {
      return fail(*fields.error());
    }
    if (fields.type() == "Sequence") {
      return sequence(fields, depth);
    }
    if (auto read = add_single(fields); !read) {
      return read;
    }
    if (fields.error()) {
      return fail(*fields.error());
    }
    return {};
  }

  Result<std::unique_ptr<const PreTokenizer>> finish() {
    if (pending_byte_level_ && written_in_bytes_) {
      steps_.push_back(std::make_unique<const FromByteAlphabetStep>());
    }
    if (steps_.empty() && !pending_byte_level_) {
      return nullptr;
    }
    return std::make_unique<const StepsPreTokenizer>(std::move(steps_), pending_byte_level_);
  }

 private:
  Result<void> sequence(JsonFields& fields, int depth) {
    simdjson::dom::array items;
    if (fields.any("pretokenizers").get(items) != simdjson::SUCCESS) {
      fields.complain("needs a list as `pretokenizers`");
      return fail(*fields.error());
    }
    for (const simdjson::dom::element item : items) {
      if (auto read = add(item, depth + 1); !read) {
        return read;
      }
    }
    return {};
  }

  Result<void> add_single(JsonFields& fields) {
    const std::string_view type = fields.type();
    if (type == "ByteLevel") {
      byte_level(fields);
      return {};
    }
    if (type == "Metaspace") {
      metaspace(fields);
      return {};
    }
    write_in_bytes();
    if (type == "Split") {
      return split(fields);
    }
    if (type == "Whitespace") {
      steps_.push_back(std::make_unique<const WordStep>());
    } else if (type == "WhitespaceSplit") {
      cut_at(white_space(), SplitBehavior::Removed);
    } else if (type == "BertPreTokenizer") {
      cut_at(white_space(), SplitBehavior::Removed);
      cut_at(unicode8_punctuation(), SplitBehavior::Isolated);
    } else if (type == "Punctuation") {
      cut_at(unicode8_punctuation(), behavior(fields, fields.text_or("behavior", "Isolated")));
    } else if (type == "Digits") {
      cut_at(rust_numeric(), fields.flag("individual_digits") ? SplitBehavior::Isolated
                                                              : SplitBehavior::Contiguous);
    } else if (type == "CharDelimiterSplit") {
      const std::string_view delimiter = character(fields, "delimiter");
      add_match(std::make_unique<const LiteralMatcher>(std::string(delimiter)),
                SplitBehavior::Removed, false);
    } else if (type == "FixedLength") {
      const std::uint64_t length = fields.number_or("length", 5);
      if (length == 0) {
        fields.complain("needs a `length` above 0");
      }
      steps_.push_back(std::make_unique<const FixedLengthStep>(length));
    } else {
      fields.complain("is of a type that Baton does not know");
    }
    return {};
  }

  Result<void> split(JsonFields& fields) {
    const SplitBehavior how = behavior(fields, fields.text("behavior"));
    const bool invert = fields.flag("invert");
    const simdjson::dom::element pattern = fields.any("pattern");
    if (fields.error()) {
      return {};
    }
    auto matcher = match_json(pattern);
    if (!matcher) {
      return fail(matcher.error());
    }
    add_match(std::move(*matcher), how, invert);
    return {};
  }

  // Pieces stay plain bytes as long as nothing comes behind ByteLevel that would see its alphabet.
  void byte_level(JsonFields& fields) {
    if (pending_byte_level_) {
      fields.complain("stands behind another ByteLevel, which Baton does not support");
      return;
    }
    fields.flag("trim_offsets");  // needed, and for offsets only
    if (fields.flag("add_prefix_space")) {
      steps_.push_back(std::make_unique<const PrefixSpaceStep>());
    }
    if (fields.flag_or("use_regex", true)) {
      add_match(scanner_for(kGpt2Pattern), SplitBehavior::Isolated, false);
    }
    pending_byte_level_ = true;
    text_changed_ = true;
  }

  void metaspace(JsonFields& fields) {
    const std::string_view sign = character(fields, "replacement");
    const std::string_view scheme = fields.text_or("prepend_scheme", "always");
    const bool split = fields.flag_or("split", true);
    auto prepend = MetaspaceStep::Prepend::Always;
    if (scheme == "first") {
      prepend = MetaspaceStep::Prepend::First;
    } else if (scheme == "never") {
      prepend = MetaspaceStep::Prepend::Never;
    } else if (scheme != "always") {
      fields.complain("has a `prepend_scheme` that Baton does not know");
    }
    if (!fields.flag_or("add_prefix_space", true) && prepend != MetaspaceStep::Prepend::Never) {
      fields.complain("has an `add_prefix_space` that contradicts its `prepend_scheme`");
    }
    if (pending_byte_level_ || (text_changed_ && prepend == MetaspaceStep::Prepend::First)) {
      fields.complain("stands behind another that changes the text, which Baton does not support");
    }
    if (fields.error()) {
      return;
    }
    steps_.push_back(std::make_unique<const MetaspaceStep>(std::string(sign), prepend, split));
    text_changed_ = true;
  }

  // A step behind ByteLevel sees its alphabet.
  void write_in_bytes() {
    if (pending_byte_level_ && !written_in_bytes_) {
      steps_.push_back(std::make_unique<const ToByteAlphabetStep>());
      written_in_bytes_ = true;
    }
  }

  void cut_at(const CharSet& set, SplitBehavior how) {
    add_match(std::make_unique<const RunMatcher>(set, 1), how, false);
  }

  void add_match(std::unique_ptr<const Matcher> matcher, SplitBehavior how, bool invert) {
    steps_.push_back(std::make_unique<const MatchStep>(std::move(matcher), how, invert));
  }

  static SplitBehavior behavior(JsonFields& fields, std::string_view name) {
    const auto found = split_behavior(name);
    if (!found) {
      fields.complain("has a `behavior` that Baton does not know");
    }
    return found.value_or(SplitBehavior::Isolated);
  }

  // One character, or a complaint and some character.
  static std::string_view character(JsonFields& fields, std::string_view name) {
    const std::string_view text = fields.text(name);
    if (text.empty() || utf8_size(text[0]) != text.size()) {
      fields.complain("needs one character as its sign");
      return " ";
    }
    return text;
  }

  std::vector<std::unique_ptr<const SplitStep>> steps_;
  bool pending_byte_level_ = false;  // its alphabet is what the model sees
  bool written_in_bytes_ = false;
  bool text_changed_ = false;
};

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::from_json(simdjson::dom::element json) {
  if (json.is_null()) {
    return nullptr;
  }
  PreTokenizerBuilder builder;
  if (auto read = builder.add(json); !read) {
    return fail(read.error());
  }
  return builder.finish();
}

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::from_pattern(std::string_view pattern) {
  auto matcher = match_regex(pattern, Dialect::FancyRegex);
  if (!matcher) {
    return fail(matcher.error());
  }
  std::vector<std::unique_ptr<const SplitStep>> steps;
  steps.push_back(
      std::make_unique<const MatchStep>(std::move(*matcher), SplitBehavior::Isolated, false));
  return std::make_unique<const StepsPreTokenizer>(std::move(steps), true);
}

}  // namespace baton::tokenizer
