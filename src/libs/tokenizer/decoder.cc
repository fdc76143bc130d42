// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/decoder.h"

#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/lossy_utf8.h"
#include "libs/tokenizer/text/byte_alphabet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::tokenizer {
namespace {

using Tokens = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

void join(Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all.append(token);
  tokens.clear();
  tokens.push_back(std::move(all));
}

// Tokens written in ByteLevel's alphabet, to the bytes they stand for.
class ByteLevelDecoder final : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      const std::size_t before = bytes.size();
      if (ByteAlphabet::instance().read(token, bytes)) continue;
      bytes.resize(before);
      bytes.append(token);
    }
    tokens.clear();
    tokens.push_back(lossy_utf8(bytes));
  }
  bool byte_level() const override { return true; }
};

// Runs of tokens like <0x0A>, to the text their bytes are; one U+FFFD a byte where they are none.
class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens decoded;
    std::string run;
    const auto flush = [&] {
      if (run.empty()) return;
      if (simdjson::validate_utf8(run.data(), run.size())) {
        decoded.push_back(run);
      } else {
        decoded.insert(decoded.end(), run.size(), "\uFFFD");
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        run.push_back(static_cast<char>(*byte));
        continue;
      }
      flush();
      decoded.push_back(std::move(token));
    }
    flush();
    tokens = std::move(decoded);
  }

 private:
  static std::optional<unsigned char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) return {};
    unsigned char byte = 0;
    const auto [end, wrong] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    if (wrong != std::errc() || end != token.data() + 5) return {};
    return byte;
  }
};

class FuseDecoder final : public Decoder {
 public:
  void apply(Tokens& tokens) const override { join(tokens); }
};

// Takes up to so many of one character off the ends of each token.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::size_t n = 0; n < start_ && rest.starts_with(content_); ++n) {
        rest.remove_prefix(content_.size());
      }
      for (std::size_t n = 0; n < stop_ && rest.ends_with(content_); ++n) {
        rest.remove_suffix(content_.size());
      }
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  std::size_t start_;
  std::size_t stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) replace_all(token, from_, to_);
  }

 private:
  std::string from_;
  std::string to_;
};

// The space mark to spaces. The one before the first word was never in the text; as in the library,
// all of the first token's fall away with it.
class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string mark, bool prepended)
      : mark_(std::move(mark)), prepended_(prepended) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      replace_all(tokens[at], mark_, at == 0 && prepended_ ? "" : " ");
    }
  }

 private:
  std::string mark_;
  bool prepended_;
};

// The blanks that English has no use for before punctuation.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kBlanks[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kBlanks) replace_all(text, from, to);
}

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      std::string& token = tokens[at];
      if (at > 0) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleanup_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      replace_all(tokens[at], suffix_, at + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  void apply(Tokens& tokens) const override {
    tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (!cleanup_) continue;
      clean_up(token);
      replace_all(token, delimiter_, " ");
    }
    std::erase(tokens, "");
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleanup_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<const Decoder>> steps)
      : steps_(std::move(steps)) {}
  void apply(Tokens& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }
  bool byte_level() const override { return steps_.size() == 1 && steps_[0]->byte_level(); }

 private:
  std::vector<std::unique_ptr<const Decoder>> steps_;
};

constexpr KnownMembers kDecoders[] = {
    {"BPEDecoder", {"suffix"}},
    {"ByteFallback"},
    {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"CTC", {"pad_token", "word_delimiter_token", "cleanup"}},
    {"Fuse"},
    {"Metaspace", {"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}},
    {"Replace", {"pattern", "content"}},
    {"Sequence", {"decoders"}},
    {"Strip", {"content", "start", "stop"}},
    {"WordPiece", {"prefix", "cleanup"}},
};

using Made = Result<std::unique_ptr<const Decoder>>;

Made make_strip(const JsonSection& section) {
  const auto content = section.text("content");
  if (!content) return fail(content.error());
  const auto start = section.number("start");
  if (!start) return fail(start.error());
  const auto stop = section.number("stop");
  if (!stop) return fail(stop.error());
  if (content->empty()) return section.wrong("\"content\" is empty");
  return std::make_unique<StripDecoder>(std::string(*content), *start, *stop);
}

Made make_replace(const JsonSection& section) {
  const auto pattern = section.section("pattern");
  if (!pattern) return fail(pattern.error());
  const auto only = pattern->only({"String"});
  if (!only) return fail(only.error());
  const auto from = pattern->text("String");
  if (!from) return fail(from.error());
  const auto to = section.text("content");
  if (!to) return fail(to.error());
  return std::make_unique<ReplaceDecoder>(std::string(*from), std::string(*to));
}

Made make_metaspace(const JsonSection& section) {
  const auto mark = section.find_text("replacement");
  if (!mark) return fail(mark.error());
  const auto scheme = section.find_text("prepend_scheme");
  if (!scheme) return fail(scheme.error());
  const auto legacy = section.flag("add_prefix_space", true);
  if (!legacy) return fail(legacy.error());
  if (mark->value_or("x").empty()) return section.wrong("\"replacement\" is empty");
  return std::make_unique<MetaspaceDecoder>(std::string(mark->value_or("▁")),
                                            *scheme ? **scheme != "never" : *legacy);
}

Made make_word_piece(const JsonSection& section) {
  const auto prefix = section.text("prefix");
  if (!prefix) return fail(prefix.error());
  const auto cleanup = section.flag("cleanup", true);
  if (!cleanup) return fail(cleanup.error());
  return std::make_unique<WordPieceDecoder>(std::string(*prefix), *cleanup);
}

Made make_ctc(const JsonSection& section) {
  const auto pad = section.text("pad_token");
  if (!pad) return fail(pad.error());
  const auto delimiter = section.text("word_delimiter_token");
  if (!delimiter) return fail(delimiter.error());
  const auto cleanup = section.flag("cleanup", true);
  if (!cleanup) return fail(cleanup.error());
  return std::make_unique<CtcDecoder>(std::string(*pad), std::string(*delimiter), *cleanup);
}

Made make_sequence(const JsonSection& section) {
  const auto list = section.array("decoders");
  if (!list) return fail(list.error());
  std::vector<std::unique_ptr<const Decoder>> steps;
  for (const simdjson::dom::element element : *list) {
    auto step = Decoder::from_json(element);
    if (!step) return fail(std::move(step.error()));
    if (*step == nullptr) return section.wrong("one of the decoders is null");
    steps.push_back(std::move(*step));
  }
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace

Result<std::unique_ptr<const Decoder>> Decoder::from_json(simdjson::dom::element json) {
  if (json.is_null()) return nullptr;
  const auto section = JsonSection::of(json, "decoder");
  if (!section) return fail(section.error());
  const auto type = section->text("type");
  if (!type) return fail(type.error());
  if (const auto known = section->only(*type, kDecoders); !known) return fail(known.error());
  if (*type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (*type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (*type == "Fuse") return std::make_unique<FuseDecoder>();
  if (*type == "Strip") return make_strip(*section);
  if (*type == "Replace") return make_replace(*section);
  if (*type == "Metaspace") return make_metaspace(*section);
  if (*type == "WordPiece") return make_word_piece(*section);
  if (*type == "CTC") return make_ctc(*section);
  if (*type == "Sequence") return make_sequence(*section);
  if (*type == "BPEDecoder") {
    const auto suffix = section->text("suffix");
    if (!suffix) return fail(suffix.error());
    return std::make_unique<BpeDecoder>(std::string(*suffix));
  }
  return fail(ErrorCode::InvalidFile,
              fmt::format("the decoder \"{}\" is not known to Baton", *type));
}

}  // namespace baton::tokenizer
