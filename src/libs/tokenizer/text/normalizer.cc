// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/normalizer.h"

#include "libs/tokenizer/text/json_fields.h"
#include "libs/tokenizer/text/make_matcher.h"
#include "libs/tokenizer/text/normalizers.h"
#include "libs/tokenizer/text/precompiled_normalizer.h"
#include "libs/tokenizer/text/unicode_normalizer.h"

#include <utility>
#include <vector>

namespace baton::tokenizer {
namespace {

constexpr int kDeepestNormalizer = 100;

constexpr KnownMembers kNormalizers[] = {
    {"BertNormalizer", {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}},
    {"ByteLevel"},
    {"Lowercase"},
    {"NFC"},
    {"NFD"},
    {"NFKC"},
    {"NFKD"},
    {"Nmt"},
    {"Precompiled", {"precompiled_charsmap"}},
    {"Prepend", {"prepend"}},
    {"Replace", {"pattern", "content"}},
    {"Sequence", {"normalizers"}},
    {"Strip", {"strip_left", "strip_right"}},
    {"StripAccents"},
};

using Steps = std::vector<std::unique_ptr<const Normalizer>>;

// Role. One normalizer after the other.
class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(Steps steps) : steps_(std::move(steps)) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override {
    static thread_local std::string other;  // no step holds a sequence
    std::string* target = &buffer;
    std::string_view current = text;
    for (const auto& step : steps_) {
      const std::string_view next = step->apply(current, *target);
      if (next.data() == target->data() && !next.empty()) {
        // The next step reads it, and so has to write to the other one.
        target = target == &buffer ? &other : &buffer;
      }
      current = next;
    }
    if (lies_in(current, other)) {
      buffer.assign(current);
      return buffer;
    }
    return current;
  }

 private:
  static bool lies_in(std::string_view part, const std::string& whole) {
    return part.data() >= whole.data() && part.data() <= whole.data() + whole.size();
  }

  Steps steps_;
};

// Role. Reads the `normalizer` of a tokenizer.json. Lifetime. One call.
class NormalizerBuilder {
 public:
  Result<void> add(simdjson::dom::element json, int depth = 0) {
    JsonFields fields(json, "normalizer");
    if (depth > kDeepestNormalizer) {
      fields.complain("is nested too deeply");
    }
    if (!fields.error()) {
      fields.only(kNormalizers);
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

  std::unique_ptr<const Normalizer> finish() {
    if (steps_.empty()) {
      return nullptr;
    }
    if (steps_.size() == 1) {
      return std::move(steps_[0]);
    }
    return std::make_unique<const SequenceNormalizer>(std::move(steps_));
  }

 private:
  Result<void> sequence(JsonFields& fields, int depth) {
    simdjson::dom::array items;
    if (fields.any("normalizers").get(items) != simdjson::SUCCESS) {
      fields.complain("needs a list as `normalizers`");
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
    if (type == "NFC") {
      put<UnicodeNormalizer>(NormalForm::C);
    } else if (type == "NFD") {
      put<UnicodeNormalizer>(NormalForm::D);
    } else if (type == "NFKC") {
      put<UnicodeNormalizer>(NormalForm::Kc);
    } else if (type == "NFKD") {
      put<UnicodeNormalizer>(NormalForm::Kd);
    } else if (type == "Lowercase") {
      put<LowercaseNormalizer>();
    } else if (type == "Strip") {
      const bool left = fields.flag("strip_left");
      put<StripNormalizer>(left, fields.flag("strip_right"));
    } else if (type == "StripAccents") {
      act({{unicode9_mark(), CharActionNormalizer::Remove}});
    } else if (type == "Prepend") {
      put<PrependNormalizer>(std::string(fields.text("prepend")));
    } else if (type == "ByteLevel") {
      put<ByteLevelNormalizer>();
    } else if (type == "Nmt") {
      nmt();
    } else if (type == "BertNormalizer") {
      bert(fields);
    } else if (type == "Replace") {
      return replace(fields);
    } else if (type == "Precompiled") {
      return precompiled(fields);
    } else {
      fields.complain("is of a type that Baton does not know");
    }
    return {};
  }

  Result<void> replace(JsonFields& fields) {
    const std::string content(fields.text("content"));
    const simdjson::dom::element pattern = fields.any("pattern");
    if (fields.error()) {
      return {};
    }
    auto matcher = match_json(pattern);
    if (!matcher) {
      return fail(matcher.error());
    }
    put<ReplaceNormalizer>(std::move(*matcher), content);
    return {};
  }

  Result<void> precompiled(JsonFields& fields) {
    const std::string_view table = fields.text("precompiled_charsmap");
    if (fields.error()) {
      return {};
    }
    auto normalizer = PrecompiledNormalizer::from_base64(table);
    if (!normalizer) {
      return fail(normalizer.error());
    }
    steps_.push_back(std::move(*normalizer));
    return {};
  }

  void nmt() {
    act({{{{0x1, 0x8}, {0xB, 0xB}, {0xE, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}},
          CharActionNormalizer::Remove},
         {{{0x9, 0xA},
           {0xC, 0xD},
           {0x1680, 0x1680},
           {0x200B, 0x200F},
           {0x2028, 0x2029},
           {0x2581, 0x2581},
           {0xFEFF, 0xFEFF},
           {0xFFFD, 0xFFFD}},
          CharActionNormalizer::MakeSpace}});
  }

  void bert(JsonFields& fields) {
    const bool clean_text = fields.flag("clean_text");
    const bool handle_chinese_chars = fields.flag("handle_chinese_chars");
    const bool lowercase = fields.flag("lowercase");
    const bool strip_accents = fields.optional_flag("strip_accents").value_or(lowercase);
    if (clean_text) {
      // White space among the control characters goes with them, but for those three.
      CharSet space = white_space();
      space = space.intersection(CharSet{{0xB, 0xC}, {0x85, 0x85}, {' ', ' '}}.complement());
      CharSet control = unicode8_control().intersection(space.complement());
      control.add(0xFFFD, 0xFFFD);
      act({{control, CharActionNormalizer::Remove}, {space, CharActionNormalizer::MakeSpace}});
    }
    if (handle_chinese_chars) {
      act({{{{0x3400, 0x4DBF},
             {0x4E00, 0x9FFF},
             {0xF900, 0xFAFF},
             {0x20000, 0x2A6DF},
             {0x2A700, 0x2B81F},
             {0x2B920, 0x2CEAF},
             {0x2F800, 0x2FA1F}},
            CharActionNormalizer::PutSpacesAround}});
    }
    if (strip_accents) {
      put<UnicodeNormalizer>(NormalForm::D);
      act({{unicode8_nonspacing_mark(), CharActionNormalizer::Remove}});
    }
    if (lowercase) {
      put<LowercaseNormalizer>();
    }
  }

  void act(const std::vector<CharActionNormalizer::Rule>& rules) {
    put<CharActionNormalizer>(rules);
  }

  template <class T, class... Arguments>
  void put(Arguments&&... arguments) {
    steps_.push_back(std::make_unique<const T>(std::forward<Arguments>(arguments)...));
  }

  Steps steps_;
};

}  // namespace

Result<std::unique_ptr<const Normalizer>> Normalizer::from_json(simdjson::dom::element json) {
  if (json.is_null()) {
    return nullptr;
  }
  NormalizerBuilder builder;
  if (auto read = builder.add(json); !read) {
    return fail(read.error());
  }
  return builder.finish();
}

}  // namespace baton::tokenizer
