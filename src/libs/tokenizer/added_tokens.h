// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/model.h"
#include "libs/tokenizer/text/normalizer.h"
#include "libs/tokenizer/token.h"
#include "libs/tokenizer/token_matcher.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::tokenizer {

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
  // A part of a text: a token of its own, or a segment that goes on to the model.
  struct Part {
    std::string_view text;
    std::optional<TokenId> id;
    const char* end;  // with the white space that a token takes along
  };

  // Gives a token the id that the library would: the one its text has already, else the next free
  // one. A token that is known is changed.
  void add(const AddedToken& token, const Model& model);
  // Gives it a certain id.
  void add_as(const AddedToken& token, TokenId id);
  // To be called once all are added.
  void finish(const Normalizer* normalizer);

  // Calls with the parts of a text as it came, in order, for as long as `visit` returns true.
  template <class Visit>
  void cut(std::string_view text, Visit visit) const {
    std::size_t clear = 0;
    cut(text, clear, visit);
  }
  // The same. No token of the first search begins before `clear`, which this moves on. A caller
  // that continues behind a part passes it back, so that a long text is not searched to its end
  // each time.
  template <class Visit>
  void cut(std::string_view text, std::size_t& clear, Visit visit) const {
    const auto pass = [&](const Part& part) {
      if (part.id || normalizes_ || normalized_.empty()) return visit(part);
      return visit_parts(part.text, normalized_, visit);
    };
    visit_parts(text, raw_, pass, &clear);
  }
  // The same for a normalized part of it, where some tokens are found only there.
  template <class Visit>
  void cut_normalized(std::string_view text, Visit visit) const {
    visit_parts(text, normalized_, visit);
  }
  bool any_normalized() const { return normalizes_ && !normalized_.empty(); }
  // Some of them take white space along, which is lost with it.
  bool lose_space() const { return lose_space_; }
  // A token of a text as it came that is more than white space: a good place to cut, behind its end.
  // The text on either side has the same tokens without the other side.
  bool is_border(TokenId id) const { return id < borders_.size() && borders_[id]; }
  // Whether the end of a border that was seen before can be its end here, too: white space behind it
  // might go with it.
  bool may_end_at(std::string_view text, std::size_t at) const;

  std::optional<TokenId> find(std::string_view content) const;
  // The decoded form: a token that is looked for in normalized text is normalized itself.
  std::optional<std::string_view> content(TokenId id) const;
  bool special(std::string_view content) const { return specials_.contains(content); }
  bool contains(std::string_view content) const { return find(content).has_value(); }
  // Ids of tokens that the model does not have.
  std::size_t beyond(const Model& model) const;

 private:
  struct Reach {  // of a token, with the white space that it takes along
    std::size_t begin;
    std::size_t end;
  };

  void look_for(TokenId id, const Normalizer* normalizer);
  void find_borders();
  bool may_be_border(const AddedToken& token) const;
  // Nothing where the token does not count.
  std::optional<Reach> look_around(std::string_view text, const TokenMatcher::Match& match) const;

  // Whether `visit` wants more. `clear`: as cut() has it.
  template <class Visit>
  bool visit_parts(std::string_view text, const TokenMatcher& matcher, Visit visit,
                   std::size_t* clear = nullptr) const {
    const auto find = [&](std::size_t from) {
      const auto match = matcher.find(text, from);
      if (clear != nullptr) *clear = match ? match->begin : text.size();
      return match;
    };
    std::size_t done = 0;
    for (auto match = find(clear != nullptr ? *clear : 0); match; match = find(match->end)) {
      std::optional<Reach> reach = Reach{match->begin, match->end};
      if (look_around_) reach = look_around(text, *match);
      if (!reach) continue;
      if (done < reach->begin && !visit(Part{text.substr(done, reach->begin - done), std::nullopt,
                                             text.data() + reach->begin})) {
        return false;
      }
      if (!visit(Part{text.substr(match->begin, match->end - match->begin), match->id,
                      text.data() + reach->end}))
        return false;
      // White space that the last token took along may hold a token of its own; the library then
      // lets both count.
      done = reach->end;
    }
    return done >= text.size() ||
           visit(Part{text.substr(done), std::nullopt, text.data() + text.size()});
  }

  std::map<std::string, TokenId, std::less<>> ids_;
  std::unordered_map<TokenId, AddedToken> tokens_;
  std::unordered_map<TokenId, std::string> shown_;  // where it differs from the content
  std::vector<TokenId> order_;
  std::set<std::string, std::less<>> specials_;
  TokenId highest_ = 0;
  std::vector<bool> borders_;  // by id
  bool look_around_ = false;   // some of them
  bool lose_space_ = false;    // some of them, around them
  bool take_space_ = false;    // some of them, behind them
  bool begin_spaced_ = false;  // some of them begin with white space
  // Some tokens of the first search depend on the text behind them, or take the white space before
  // them.
  bool first_look_behind_ = false;
  bool first_take_before_ = false;
  bool normalizes_ = false;  // text is changed before normalized tokens are looked for
  TokenMatcher raw_;
  TokenMatcher normalized_;
};

}  // namespace baton::tokenizer
