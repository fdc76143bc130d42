// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/tokenize_request.h"

#include "engine/shared/dialect_fields.h"
#include "engine/shared/engine_error.h"
#include "http_client/fetch.h"
#include "wire/http_status.h"
#include "wire/json_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace baton::engine {
namespace {

using wire::kForbidden;
using wire::kNotFound;
using wire::kOk;
constexpr int kMethodNotAllowed = 405;
constexpr model::Version kFirstRenderingVllm{.major = 0, .minor = 16, .patch = 0};
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
// Longer than any context; an engine that is out of its mind must not fill the memory.
constexpr std::size_t kMostIds = std::size_t{1} << 24;
constexpr std::size_t kLongestShown = 24;

// Prompts that are asked for one by one; more are not worth it.
constexpr std::size_t kMostQuestions = 32;
// A longer list is not looked at to its end; its answer would be of another number of prompts.
constexpr std::size_t kMostChecked = 1024;

// Fields of a chat and of a completion that vLLM's /tokenize accepts.
constexpr std::array<std::string_view, 6> kTokenizedChat{"messages",
                                                         "tools",
                                                         "add_generation_prompt",
                                                         "continue_final_message",
                                                         "add_special_tokens",
                                                         "chat_template_kwargs"};
constexpr std::array<std::string_view, 1> kTokenizedCompletion{"add_special_tokens"};
// Fields that change the prompt and that /tokenize ignores.
constexpr std::array<std::string_view, 3> kUntokenized{"documents", "reasoning_effort",
                                                       "mm_processor_kwargs"};

Error not_ids(std::string_view why) {
  return Error(Errc::EngineProtocol, fmt::format("the engine's answer has no token ids: {}", why));
}

// `raw` is a valid JSON array.
Result<tokenizer::TokenIds> ids_of(std::string_view raw) {
  tokenizer::TokenIds ids;
  std::size_t at = raw.find_first_not_of(kSpace, 1);
  while (raw[at] != ']') {
    std::int32_t id = 0;  // as wide as those of the engines
    const std::size_t begin = at;
    const auto [end, error] = std::from_chars(raw.data() + at, raw.data() + raw.size(), id);
    at = raw.find_first_not_of(kSpace, static_cast<std::size_t>(end - raw.data()));
    if (error != std::errc() || id < 0 || (raw[at] != ',' && raw[at] != ']')) {
      const std::string_view found =
          raw.substr(begin, raw.find_first_of(",] \t\r\n", begin) - begin);
      return fail(not_ids(
          fmt::format("\"{}\" is no id from 0 to 2147483647", found.substr(0, kLongestShown))));
    }
    ids.push_back(static_cast<tokenizer::TokenId>(id));
    if (raw[at] == ',') at = raw.find_first_not_of(kSpace, at + 1);
  }
  return ids;
}

// Role. Collects an answer's contents, within its bounds.
class Answered {
 public:
  Result<void> add(std::string_view raw) {
    if (!raw.starts_with('[')) return fail(not_ids("it is no list"));
    auto ids = ids_of(raw);
    if (!ids) return fail(std::move(ids.error()));
    if (ids->empty()) return fail(not_ids("a prompt has none"));
    total_ += ids->size();
    if (total_ > kMostIds) return fail(not_ids("there are too many"));
    prompts_.push_back(std::move(*ids));
    return {};
  }
  std::vector<tokenizer::TokenIds> take() { return std::move(prompts_); }

 private:
  std::vector<tokenizer::TokenIds> prompts_;
  std::size_t total_ = 0;
};

// A request as it was rendered.
Result<void> add_rendered(std::string_view raw, Answered& answered) {
  const auto rendered = wire::JsonObject::within(raw);
  const auto ids = rendered ? rendered->find("token_ids") : std::nullopt;
  if (!ids) return fail(not_ids("token_ids is missing"));
  if (says_something(rendered->find("features")))
    return fail(Errc::EngineRejected, "the prompt is of more than text");
  return answered.add(*ids);
}

Result<void> add_tokenized(std::string_view raw, Answered& answered) {
  const auto first = wire::first_element(raw);
  if (!first || !first->starts_with('[')) return answered.add(raw);
  for (const std::string_view one : wire::elements(raw, kAll)) {
    if (auto added = answered.add(one); !added) return added;
  }
  return {};
}

// The request without fields meant for workers, under their name for the model.
wire::JsonSplice request_of(const ClientCall& call) {
  wire::JsonSplice splice(call.body);
  for (const std::string_view field : kHandoffFields) splice.remove(field);
  if (!call.model.empty()) splice.set("model", wire::json_quote(call.model));
  return splice;
}

// Only the named members, and the model.
template <std::size_t N>
std::string selection_of(const ClientCall& call, const std::array<std::string_view, N>& fields) {
  std::string json = "{\"model\":";
  json += call.model.empty() ? std::string(call.body.find("model").value_or("null"))
                             : wire::json_quote(call.model);
  for (const std::string_view field : fields) {
    const auto value = call.body.find(field);
    if (!value || *value == "null") continue;
    json.append(",\"").append(field).append("\":").append(*value);
  }
  return json;  // without its closing brace
}

// The prompts of a completion: nothing where they are none.
std::vector<std::string_view> prompts_of(const wire::JsonObject& body) {
  const auto prompt = body.find("prompt");
  if (!prompt) return {};
  if (prompt->starts_with('"') || is_token_ids(*prompt)) return {*prompt};
  return wire::elements(*prompt, kMostChecked);
}

using Part = TokenQuestion::Part;

// A chat as SGLang's /tokenize takes it. It heeds two fields there that it ignores in a chat.
std::string sglang_chat(const ClientCall& call) {
  wire::JsonSplice splice = request_of(call);
  splice.remove("add_generation_prompt");
  splice.remove("add_special_tokens");
  return splice.build().joined();
}

// nullopt: the prompt is neither text nor ids.
std::optional<Part> tokenize_part(const ClientCall& call, std::string_view prompt) {
  if (is_token_ids(prompt)) {
    auto ids = ids_of(prompt);
    if (!ids) return std::nullopt;
    return Part{.body = {}, .ids = std::move(*ids)};
  }
  if (!prompt.starts_with('"')) return std::nullopt;
  std::string body = selection_of(call, kTokenizedCompletion);
  body.append(",\"prompt\":").append(prompt).append("}");
  return Part{.body = std::move(body), .ids = {}};
}

std::optional<std::vector<Part>> parts_of(const ClientCall& call, model::Engine engine,
                                          bool whole) {
  if (call.api == Api::Chat) {
    std::vector<Part> parts(1);
    std::string& body = parts.front().body;
    if (engine == model::Engine::Sglang) {
      body = sglang_chat(call);
    } else {
      body = whole ? request_of(call).build().joined() : selection_of(call, kTokenizedChat) + "}";
    }
    return parts;
  }
  const auto prompts = prompts_of(call.body);
  if (prompts.empty()) return std::nullopt;
  std::vector<Part> parts;
  if (whole && !std::ranges::any_of(prompts, is_token_ids)) {
    parts.push_back(
        {.body = request_of(call).build().joined(), .ids = {}, .prompts = prompts.size()});
    return parts;
  }
  if (prompts.size() > kMostQuestions) return std::nullopt;
  for (const std::string_view prompt : prompts) {
    auto part = tokenize_part(call, prompt);
    if (!part) return std::nullopt;
    // Fields that the other route knows go along one prompt at a time.
    if (whole && !part->body.empty())
      part->body = request_of(call).set("prompt", prompt).build().joined();
    parts.push_back(std::move(*part));
  }
  return parts;
}

std::string header_lines(const wire::Headers& headers) {
  const auto key = headers.find("authorization");
  return key ? fmt::format("Authorization: {}\r\n", *key) : std::string();
}

Error cannot_be_asked(model::Engine engine) {
  return Error(
      Errc::EngineRejected,
      fmt::format("{} cannot be asked for the tokens of this request", model::to_string(engine)));
}

}  // namespace

TokenRoute token_route(model::Engine engine, std::optional<model::Version> version) {
  switch (engine) {
    case model::Engine::Vllm:
      return version.value_or(kFirstRenderingVllm) >= kFirstRenderingVllm ? TokenRoute::Render
                                                                          : TokenRoute::Tokenize;
    case model::Engine::Sglang:
      return TokenRoute::Tokenize;
    case model::Engine::Trtllm:
      break;
  }
  return TokenRoute::None;
}

std::optional<TokenQuestion> token_question(const ClientCall& call, model::Engine engine,
                                            TokenRoute route) {
  if (route == TokenRoute::None) return std::nullopt;
  // SGLang uses it for tokenizing, but not for completing.
  const bool ignored = engine == model::Engine::Sglang && call.api != Api::Chat &&
                       says_something(call.body.find("add_special_tokens"));
  if (ignored) return std::nullopt;
  TokenQuestion question;
  const bool whole = route == TokenRoute::Render || engine == model::Engine::Sglang;
  if (route == TokenRoute::Render) {
    question.path =
        call.api == Api::Chat ? "/v1/chat/completions/render" : "/v1/completions/render";
  } else {
    question.path = "/tokenize";
  }
  if (!whole) {
    for (const std::string_view field : kUntokenized) {
      if (says_something(call.body.find(field))) return std::nullopt;
    }
  }
  auto parts = parts_of(call, engine, whole);
  if (!parts) return std::nullopt;
  question.parts = std::move(*parts);
  return question;
}

Result<std::vector<tokenizer::TokenIds>> read_token_ids(const std::string& answer) {
  // A list is read as a member. Text that ends the object itself is no document.
  const std::string text = fmt::format("{{\"answer\":{}}}", answer);
  const auto outer = wire::JsonObject::parse(text);
  const auto document = outer ? outer->find("answer") : std::nullopt;
  const auto last = answer.find_last_not_of(kSpace);
  if (!document || document->size() != last + 1 - answer.find_first_not_of(kSpace))
    return fail(not_ids("it is not JSON"));
  Answered answered;
  if (document->starts_with('[')) {
    for (const std::string_view one : wire::elements(*document, kAll)) {
      if (auto added = add_rendered(one, answered); !added) return fail(std::move(added.error()));
    }
  } else {
    const auto object = wire::JsonObject::within(*document);
    const auto tokens = object ? object->find("tokens") : std::nullopt;
    auto added = tokens ? add_tokenized(*tokens, answered) : add_rendered(*document, answered);
    if (!added) return fail(std::move(added.error()));
  }
  return answered.take();
}

awaitable<Result<ToldTokens>> ask_tokens(http_client::UpstreamPool& pool, net::CpuPool& cpu,
                                         http_client::Target target, const model::WorkerSpec& spec,
                                         std::optional<model::Version> version,
                                         const ClientCall& call, const wire::Headers& headers,
                                         http_client::ExchangeTimeouts timeouts,
                                         std::size_t largest_answer, Cancellation& cancellation) {
  TokenRoute route = token_route(spec.engine, version);
  const std::size_t size = call.body.text().size();
  const auto ask_by = [&] { return token_question(call, spec.engine, route); };
  auto question = co_await cpu.run_sized(size, ask_by);
  if (!question) co_return fail(cannot_be_asked(spec.engine));
  const std::string lines = header_lines(headers);
  ToldTokens told;
  std::vector<tokenizer::TokenIds>& prompts = told.prompts;
  for (std::size_t i = 0; i < question->parts.size();) {
    Part& part = question->parts[i];
    if (part.body.empty()) {
      prompts.push_back(std::move(part.ids));
      ++i;
      continue;
    }
    auto answer = co_await http_client::fetch(pool, target,
                                              {.method = "POST",
                                               .path = question->path,
                                               .own_headers = lines,
                                               .body = part.body,
                                               .largest_answer = largest_answer},
                                              timeouts, &cancellation);
    if (!answer) co_return fail(std::move(answer.error()));
    const bool no_such_path = answer->status == kNotFound || answer->status == kMethodNotAllowed ||
                              answer->status == kForbidden;
    if (route == TokenRoute::Render && no_such_path) {
      told.render_refused = answer->status == kForbidden;
      route = TokenRoute::Tokenize;
      question = co_await cpu.run_sized(size, ask_by);
      if (!question) co_return fail(cannot_be_asked(spec.engine));
      prompts.clear();
      i = 0;
      continue;
    }
    if (answer->status != kOk)
      co_return fail(co_await cpu.run_sized(answer->body.size(), [&answer] {
        return read_engine_error(answer->status, answer->body, answer->retry_after);
      }));
    auto read = co_await cpu.run_sized(answer->body.size(),
                                       [&answer] { return read_token_ids(answer->body); });
    if (!read) co_return fail(std::move(read.error()));
    if (read->size() != part.prompts) co_return fail(not_ids("it is of another number of prompts"));
    std::ranges::move(*read, std::back_inserter(prompts));
    ++i;
  }
  co_return told;
}

}  // namespace baton::engine
