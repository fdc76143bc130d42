// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/text/normalizer.h"
#include "prompt/tokenizer/model.h"
#include "prompt/tokenizer/token.h"
#include "prompt/tokenizer/token_matcher.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::prompt {

// A token that is found in the text itself, before the model sees it.
struct AddedToken {
  std::string content;
  bool single_word = false;  // not inside of a word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;
  bool operator==(const AddedToken&) const = default;
};

// Role. The tokens that were added to a model's vocabulary, and how they cut a text.
// Confinement. Filled by one thread, then immutable; any thread.
class AddedTokens {
 public:
  // A part of a text: a token of its own, or a stretch that goes on to the model.
  struct Part {
    std::string_view text;
    std::optional<TokenId> id;
  };

  // Gives a token the id that the library would: the one its text has already, else the next free
  // one. A token that is known is changed.
  void add(const AddedToken& token, const Model& model);
  // Gives it a certain id.
  void add_as(const AddedToken& token, TokenId id);
  // To be called once all are added.
  void finish(const Normalizer* normalizer);

  // Appends the parts of a text as it came, or of a normalized stretch of it.
  void cut_raw(std::string_view text, std::vector<Part>& parts) const { cut(text, raw_, parts); }
  void cut_normalized(std::string_view text, std::vector<Part>& parts) const {
    cut(text, normalized_, parts);
  }
  bool any_normalized() const { return !normalized_.empty(); }
  // Tokens found in a text as it came do not look at what is around them, so that parts of it have
  // the same tokens on their own, if they are cut at the end of a token.
  bool find_alone() const { return !look_around_; }
  // A token that is more than white space: a good place to cut.
  bool is_border(TokenId id) const { return id < borders_.size() && borders_[id]; }

  std::optional<TokenId> find(std::string_view content) const;
  // As decoding shows it: a token that is looked for in normalized text is normalized itself.
  std::optional<std::string_view> content(TokenId id) const;
  bool special(std::string_view content) const { return specials_.contains(content); }
  bool contains(std::string_view content) const { return find(content).has_value(); }
  // Ids of tokens that the model does not have.
  std::size_t beyond(const Model& model) const;

 private:
  void look_for(TokenId id, const Normalizer* normalizer);
  void cut(std::string_view text, const TokenMatcher& matcher, std::vector<Part>& parts) const;

  std::map<std::string, TokenId, std::less<>> ids_;
  std::unordered_map<TokenId, AddedToken> tokens_;
  std::unordered_map<TokenId, std::string> shown_;  // where it differs from the content
  std::vector<TokenId> order_;
  std::set<std::string, std::less<>> specials_;
  TokenId highest_ = 0;
  std::vector<bool> borders_;  // by id
  bool look_around_ = false;   // some of them
  TokenMatcher raw_;
  TokenMatcher normalized_;
};

}  // namespace baton::prompt
