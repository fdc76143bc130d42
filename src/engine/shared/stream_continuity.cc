// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_continuity.h"

#include "engine/shared/completion_json.h"
#include "engine/shared/dialect_fields.h"
#include "engine/shared/text_patch.h"
#include "wire/json_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace baton::engine {
namespace {

struct Ids {
  std::string_view text;  // without brackets
  std::int64_t count;
};

// nullopt where it is not a list of token ids.
std::optional<Ids> read_ids(std::string_view raw) {
  if (!raw.starts_with('[')) return std::nullopt;
  const std::string_view text = raw.substr(1, raw.size() - 2);
  if (text.find_first_not_of("0123456789, \t\r\n") != std::string_view::npos) return std::nullopt;
  if (text.find_first_of("0123456789") == std::string_view::npos) return Ids{"", 0};
  return Ids{text, 1 + std::ranges::count(text, ',')};
}

std::optional<wire::JsonObject> only_choice_of(const wire::JsonObject& chunk) {
  const auto choices = chunk.find("choices");
  const auto first = choices ? wire::first_element(*choices) : std::nullopt;
  return first ? wire::JsonObject::within(*first) : std::nullopt;
}

bool has_text(const wire::JsonObject& choice) {
  if (const auto delta = choice.find_object("delta")) return says_something(delta->find("content"));
  return says_something(choice.find("text"));
}

}  // namespace

StreamContinuity::StreamContinuity(const ClientCall& call)
    : client_wants_ids_(call.body.find_bool("return_token_ids") == true),
      limit_(token_limit(call)) {
  const auto options = call.body.find_object("stream_options");
  client_wants_usage_ = options && options->find_bool("include_usage") == true;
}

StreamContinuity::Passage StreamContinuity::pass(std::string_view data) {
  if (data == "[DONE]") return {Passage::Kind::AsItIs, {}};
  const auto chunk = wire::JsonObject::parse(data);
  if (!chunk || says_something(chunk->find("error"))) return {Passage::Kind::AsItIs, {}};
  read(*chunk);
  return rewrite(*chunk);
}

std::optional<std::string> StreamContinuity::why_not() const {
  if (blocked_) return blocked_;
  if (finished_) return "the answer had ended";
  if (limit_ && progress_.produced >= *limit_) return "all tokens asked for were there";
  if (progress_.produced > 0 && progress_.prompt_token_ids.empty())
    return "the engine did not give the prompt's token ids";
  // The client has seen these ids, so they cannot be produced again; their text is in the worker
  // that failed.
  if (client_wants_ids_ && pending_count_ > 0) return "the last token's text was still to come";
  return std::nullopt;
}

const Progress* StreamContinuity::progress() const {
  return progress_.produced > 0 ? &progress_ : nullptr;
}

void StreamContinuity::resume() {
  pending_.clear();
  pending_count_ = 0;
  before_ = progress_.produced;
  resumed_ = began_;
}

std::optional<std::string> StreamContinuity::closing_events() const {
  if (!finished_) return std::nullopt;
  const std::string done = "data: [DONE]\n\n";
  if (!client_wants_usage_ || usage_passed_) return done;
  if (prompt_tokens_ == 0 || blocked_) return std::nullopt;
  return as_event(fmt::format(
             R"({{{}"choices":[],"usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{}}}}})",
             frame_, prompt_tokens_, prompt_tokens_ + progress_.produced, progress_.produced)) +
         done;
}

void StreamContinuity::block(std::string reason) {
  if (blocked_) return;
  blocked_ = std::move(reason);
  // Given back, not only emptied: a long stream may still follow.
  progress_ = Progress();
  pending_ = std::string();
  pending_count_ = 0;
}

void StreamContinuity::read(const wire::JsonObject& chunk) {
  if (!began_) {
    began_ = true;
    id_ = chunk.find("id").value_or("");
    created_ = chunk.find("created").value_or("");
    for (const std::string_view key : {"id", "object", "created", "model", "system_fingerprint"}) {
      if (const auto value = chunk.find(key)) frame_ += fmt::format(R"("{}":{},)", key, *value);
    }
  }
  const auto choices = chunk.find("choices");
  if (choices && wire::elements(*choices, 2).size() > 1) block("the answer has several choices");
  if (const auto choice = only_choice_of(chunk)) {
    read_choice(chunk, *choice);
  } else if (says_something(chunk.find("usage"))) {
    usage_passed_ = true;
  }
}

void StreamContinuity::read_choice(const wire::JsonObject& chunk, const wire::JsonObject& choice) {
  if (choice.find_integer("index").value_or(0) != 0) block("the answer has several choices");
  if (const auto delta = choice.find_object("delta")) {
    for (const std::string_view key : {"tool_calls", "function_call"}) {
      if (says_something(delta->find(key))) block("a tool call had begun");
    }
    for (const std::string_view key : {"reasoning_content", "reasoning"}) {
      if (says_something(delta->find(key))) block("the answer has reasoning in it");
    }
  }
  if (const auto reason = choice.find_string("finish_reason"))
    finished_ = finished_ || (!reason->empty() && !means_failure(*reason));
  if (blocked_) return;

  const auto prompt = chunk.has("prompt_token_ids") ? chunk.find("prompt_token_ids")
                                                    : choice.find("prompt_token_ids");
  if (!resumed_ && progress_.prompt_token_ids.empty() && says_something(prompt)) {
    const auto ids = read_ids(*prompt);
    if (!ids) return block("the engine's token ids make no sense");
    prompt_tokens_ = ids->count;
    progress_.prompt_token_ids = *prompt;
  }
  take_ids(choice.find("token_ids").value_or("null"), has_text(choice));
}

void StreamContinuity::take_ids(std::string_view raw, bool has_text) {
  const auto ids = raw == "null" ? Ids{"", 0} : read_ids(raw);
  if (!ids) return block("the engine's token ids make no sense");
  if (has_text && ids->count == 0) return block("the engine left token ids out");
  if (ids->count > 0) {
    pending_.append(pending_.empty() ? "" : ",").append(ids->text);
    pending_count_ += ids->count;
  }
  if ((has_text || finished_) && pending_count_ > 0) {
    progress_.token_ids.append(progress_.token_ids.empty() ? "" : ",").append(pending_);
    progress_.produced += pending_count_;
    pending_.clear();
    pending_count_ = 0;
  }
  if (progress_.prompt_token_ids.size() + progress_.token_ids.size() + pending_.size() > kMostIds)
    block("the answer became too long to be kept");
}

StreamContinuity::Passage StreamContinuity::rewrite(const wire::JsonObject& chunk) const {
  TextPatch patch(chunk.text());
  if (const auto choice = only_choice_of(chunk)) {
    auto changed = rewrite_choice(*choice);
    if (!changed) return {Passage::Kind::Dropped, {}};
    if (*changed != choice->text()) patch.replace(choice->text(), std::move(*changed));
  }
  if (resumed_) {
    const auto id = chunk.find("id");
    if (id && !id_.empty() && *id != id_) patch.replace(*id, id_);
    const auto created = chunk.find("created");
    if (created && !created_.empty() && *created != created_) patch.replace(*created, created_);
    // The later worker counts the earlier workers' output as part of the prompt.
    if (const auto usage = chunk.find_object("usage"); usage && before_ > 0) {
      const auto shift = [&](std::string_view key, std::int64_t by) {
        const auto tokens = usage->find_integer(key);
        if (tokens && *tokens >= 0 && *tokens <= std::numeric_limits<std::int64_t>::max() - before_)
          patch.replace(*usage->find(key),
                        fmt::format("{}", std::max<std::int64_t>(0, *tokens + by)));
      };
      shift("prompt_tokens", -before_);
      shift("completion_tokens", before_);
      // And it may have found that part in its cache.
      const std::int64_t prompt = usage->find_integer("prompt_tokens").value_or(-1);
      const auto details = usage->find_object("prompt_tokens_details");
      const auto cached = details ? details->find_integer("cached_tokens") : std::nullopt;
      const std::int64_t most =
          std::max<std::int64_t>(0, std::max<std::int64_t>(0, prompt) - before_);
      if (prompt >= 0 && cached && *cached > most)
        patch.replace(*details->find("cached_tokens"), fmt::format("{}", most));
    }
  }
  const bool strip = chunk.has("prompt_token_ids") && (!client_wants_ids_ || resumed_);
  if (patch.empty() && !strip) return {Passage::Kind::AsItIs, {}};
  std::string text = patch.apply();
  if (strip) {
    const auto patched = wire::JsonObject::within(text);
    text = wire::JsonSplice(*patched).remove("prompt_token_ids").build().joined();
  }
  return {Passage::Kind::Changed, as_event(std::move(text))};
}

std::optional<std::string> StreamContinuity::rewrite_choice(const wire::JsonObject& choice) const {
  wire::JsonSplice splice(choice);
  if (!client_wants_ids_) splice.remove("token_ids");
  if (!client_wants_ids_ || resumed_) splice.remove("prompt_token_ids");
  const auto delta = choice.find_object("delta");
  if (resumed_ && delta && delta->has("role")) {
    // The client already has the role.
    const bool only_role = !blocked_ && !has_text(choice) &&
                           !says_something(choice.find("finish_reason")) &&
                           !(client_wants_ids_ && says_something(choice.find("token_ids")));
    if (only_role) return std::nullopt;
    splice.set("delta", wire::JsonSplice(*delta).remove("role").build().joined());
  }
  return splice.build().joined();
}

}  // namespace baton::engine
