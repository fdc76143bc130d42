// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/bpe_model.h"
#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/text/byte_alphabet.h"
#include "libs/tokenizer/vocabulary_file.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace baton::tokenizer {
namespace {

Result<BpeOptions> read_options(const JsonSection& model) {
  const auto known =
      model.only({"type", "vocab", "merges", "dropout", "unk_token", "continuing_subword_prefix",
                  "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"});
  if (!known) return fail(known.error());
  if (const auto dropout = model.find("dropout")) {
    double share = 0;
    if (dropout->get(share) != simdjson::SUCCESS || share != 0) {
      return model.wrong("\"dropout\" would make tokens a matter of luck; set it to null");
    }
  }
  const auto unknown = model.find_text("unk_token");
  const auto prefix = model.find_text("continuing_subword_prefix");
  const auto suffix = model.find_text("end_of_word_suffix");
  const auto fuse = model.flag("fuse_unk", false);
  const auto fallback = model.flag("byte_fallback", false);
  const auto ignore = model.flag("ignore_merges", false);
  for (const auto* text : {&unknown, &prefix, &suffix}) {
    if (!*text) return fail(text->error());
  }
  for (const auto* flag : {&fuse, &fallback, &ignore}) {
    if (!*flag) return fail(flag->error());
  }
  BpeOptions options;
  if (*unknown) options.unknown = std::string(**unknown);
  options.prefix = prefix->value_or("");
  options.suffix = suffix->value_or("");
  options.fuse_unknown = *fuse;
  options.byte_fallback = *fallback;
  options.ignore_merges = *ignore;
  return options;
}

// Role. Reads merges, written "left right" or ["left", "right"], into a table of ids.
class MergeReader {
 public:
  MergeReader(const JsonSection& model, BpeModel::Source& source)
      : model_(model), source_(source), prefix_(source.options.prefix.size()) {}

  Result<void> read(simdjson::dom::array merges) {
    std::uint32_t rank = 0;
    for (const simdjson::dom::element merge : merges) {
      std::string_view line;
      simdjson::dom::array pair;
      if (merge.get(line) == simdjson::SUCCESS) {
        if (line.starts_with("#version")) continue;
        const std::size_t space = line.find(' ');
        if (space == line.npos || line.find(' ', space + 1) != line.npos) return bad(rank);
        if (!add(line.substr(0, space), line.substr(space + 1), rank)) return bad(rank);
      } else if (merge.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
        std::string_view left;
        std::string_view right;
        if (pair.at(0).get(left) != simdjson::SUCCESS ||
            pair.at(1).get(right) != simdjson::SUCCESS || !add(left, right, rank)) {
          return bad(rank);
        }
      } else {
        return bad(rank);
      }
      ++rank;
    }
    return {};
  }

 private:
  std::unexpected<Error> bad(std::uint32_t rank) const {
    return model_.wrong(
        fmt::format("merges[{}] is not two tokens of the vocabulary that make a third one", rank));
  }

  bool add(std::string_view left, std::string_view right, std::uint32_t rank) {
    if (left.empty() || right.size() <= prefix_) return false;
    joined_.clear();
    if (source_.byte_level == ByteLevel::Yes) {
      if (!alphabet_.read(left, joined_)) return false;
      const std::size_t middle = joined_.size();
      if (!alphabet_.read(right, joined_)) return false;
      left = std::string_view(joined_).substr(0, middle);
      right = std::string_view(joined_).substr(middle);
    } else {
      joined_.append(left).append(right.substr(prefix_));
    }
    const auto left_id = source_.vocabulary.find(left);
    const auto right_id = source_.vocabulary.find(right);
    const auto id = source_.vocabulary.find(joined_);
    if (!left_id || !right_id || !id) return false;
    source_.merges.set(*left_id, *right_id, {.rank = rank, .id = *id});
    return true;
  }

  const ByteAlphabet& alphabet_ = ByteAlphabet::instance();
  const JsonSection& model_;
  BpeModel::Source& source_;
  std::size_t prefix_;
  std::string joined_;
};

}  // namespace

Result<std::unique_ptr<const Model>> BpeModel::from_json(simdjson::dom::element json,
                                                         ByteLevel byte_level) {
  const auto section = JsonSection::of(json, "model");
  if (!section) return fail(section.error());
  auto options = read_options(*section);
  if (!options) return fail(std::move(options.error()));
  const auto merges = section->array("merges");
  if (!merges) return fail(merges.error());

  // These options speak of the characters that bytes are written as.
  const bool bytes = byte_level == ByteLevel::Yes && options->prefix.empty() &&
                     options->suffix.empty() && !options->byte_fallback;
  auto tokens = read_vocabulary(*section, bytes ? ByteLevel::Yes : ByteLevel::No);
  if (!tokens) return fail(std::move(tokens.error()));
  Source source{.vocabulary = std::move(tokens->vocabulary),
                .unwritable = std::move(tokens->unwritable),
                .merges = MergeTable(merges->size()),
                .options = std::move(*options),
                .byte_level = bytes ? ByteLevel::Yes : ByteLevel::No};
  const auto read = MergeReader(*section, source).read(*merges);
  if (!read) return fail(read.error());
  return make(std::move(source));
}

}  // namespace baton::tokenizer
