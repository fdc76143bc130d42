// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/continuation.h"

#include "engine/shared/dialect_fields.h"
#include "wire/json_array.h"

#include <array>
#include <charconv>
#include <limits>
#include <string_view>

namespace baton::engine {
namespace {

// Fields that, where they say something, keep a worker from going on where another one stopped.
struct Obstacle {
  std::string_view field;
  std::string_view reason;
};
constexpr std::string_view kGuided = "guided decoding";
constexpr std::string_view kLogprobs = "logprobs";
constexpr std::string_view kLogits = "custom processing of logits";
constexpr std::array<Obstacle, 22> kObstacles{{
    // The state of the grammar is in the worker that failed.
    {"guided_json", kGuided},
    {"guided_regex", kGuided},
    {"guided_choice", kGuided},
    {"guided_grammar", kGuided},
    {"guided_decoding", kGuided},
    {"structured_outputs", kGuided},
    {"structural_tag", kGuided},
    {"grammar", kGuided},
    {"ebnf", kGuided},
    {"regex", kGuided},
    {"json_schema", kGuided},
    {"top_logprobs", kLogprobs},
    {"prompt_logprobs", kLogprobs},
    // A match that begins before the seam would be missed.
    {"stop", "stop strings"},
    {"bad_words", "bad words"},
    {"logits_processors", kLogits},
    {"custom_logit_processor", kLogits},
    // The random numbers would begin again.
    {"seed", "a seed"},
    {"prompt_embeds", "a prompt that is not of tokens"},
    {"truncate_prompt_tokens", "a prompt cut to length"},
    {"suffix", "a suffix"},
    {"use_beam_search", "beam search"},
}};

// Whether the number there is another than the one that changes nothing.
bool differs(const wire::JsonObject& body, std::string_view field, double neutral) {
  const auto raw = body.find(field);
  if (!raw || *raw == "null") return false;
  double value = 0;
  const auto parsed = std::from_chars(raw->data(), raw->data() + raw->size(), value);
  return parsed.ec != std::errc() || value != neutral;
}

bool has_several_prompts(const ClientCall& call) {
  if (call.api != Api::Completions) return false;
  const auto prompts = wire::elements(call.body.find("prompt").value_or("null"), 2);
  return prompts.size() > 1 && (prompts[0].front() == '"' || prompts[0].front() == '[');
}

// Token ids of a chat stand for its text only.
bool has_other_than_text(const wire::JsonObject& body) {
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();
  for (const std::string_view text : wire::elements(body.find("messages").value_or("null"), kAll)) {
    const auto message = wire::JsonObject::within(text);
    if (!message && text.starts_with('{')) return true;  // too many members to look at
    const auto content = message ? message->find("content") : std::nullopt;
    for (const std::string_view part : wire::elements(content.value_or("null"), kAll)) {
      const auto object = wire::JsonObject::within(part);
      if (part.starts_with('{') && (!object || object->find_string("type") != "text")) return true;
    }
  }
  return false;
}

bool is_guided(const wire::JsonObject& body) {
  const auto format = body.find_object("response_format");
  if (!format && says_something(body.find("response_format"))) return true;
  if (format && format->find_string("type") != "text") return true;
  // A tool that must be called is written under a grammar.
  return body.find_string("tool_choice") == "required" || body.find_object("tool_choice");
}

}  // namespace

std::optional<std::string> why_not_continuable(model::Engine engine, const ClientCall& call) {
  const wire::JsonObject& body = call.body;
  if (body.find_bool("stream") != true) return "the answer is not streamed";
  if (!gives_token_ids(engine, call.api)) return "the engine streams no token ids";
  if (call.choice || body.find_integer("n") > 1 || has_several_prompts(call))
    return "several choices or prompts";
  if (is_guided(body)) return std::string(kGuided);
  for (const auto& [field, reason] : kObstacles) {
    const auto value = body.find(field);
    if (says_something(value) && *value != "false") return std::string(reason);
  }
  // In a completion, `logprobs: 0` requests those of the sampled tokens.
  const auto logprobs = body.find("logprobs");
  if (says_something(logprobs) && *logprobs != "false") return std::string(kLogprobs);
  if (body.find_integer("best_of") > 1) return "best_of";
  if (body.find_bool("echo") == true) return "echo";
  if (differs(body, "presence_penalty", 0) || differs(body, "frequency_penalty", 0) ||
      differs(body, "repetition_penalty", 1))
    return "penalties";
  if (call.api == Api::Chat && has_other_than_text(body)) return "a prompt that is not of tokens";
  return std::nullopt;
}

}  // namespace baton::engine
