// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/tokenize_api.h"

#include "api/request_fields.h"
#include "engine/shared/api.h"
#include "pipeline/prompt_rules.h"
#include "prompt/completion_prompts.h"
#include "prompt/preprocessor.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::api {
namespace {

using boost::asio::awaitable;

// Memory that an answer takes, in multiples of the body's size, if each byte of the body is a
// token: the ids as text, and the text of each. For a detokenized text: the text, its escaped form,
// and both as they grow.
constexpr std::size_t kToTellIds = 17;
constexpr std::size_t kToTellTokens = 30;
constexpr std::size_t kToTellText = 8;

// The model that a request names, and how its prompts are made.
struct Asked {
  std::shared_ptr<const prompt::Preprocessor> preprocessor;
  std::vector<prompt::Rules> rules;
  std::optional<std::uint64_t> max_model_len;  // of its workers
};
using Answer = Result<std::string> (*)(const Asked&, const wire::JsonObject&, MemoryShare&,
                                       const std::stop_token&);

Result<Asked> find_asked(const fleet::Fleet& fleet, const pipeline::Tokenizers& tokenizers,
                         const wire::JsonObject& body) {
  const auto served = find_model(fleet, body);
  if (!served) return fail(served.error());
  const std::string& name = served->model->name();
  const auto tokens = tokenizers.find(name);
  if (tokens && tokens->preprocessor) {
    return Asked{.preprocessor = tokens->preprocessor,
                 .rules = pipeline::rules_in(*served->model),
                 .max_model_len = pipeline::max_model_len(*served->model)};
  }
  return fail(Error(Errc::InvalidRequest,
                    fmt::format("the router has no tokenizer for the model \"{}\"; its operator "
                                "can name one with models[].tokenizer",
                                name))
                  .with_param("model"));
}

bool wants_token_strs(const wire::JsonObject& body) {
  return body.find_bool("return_token_strs").value_or(false);
}

Result<std::string> tokenize(const Asked& asked, const wire::JsonObject& body, MemoryShare& memory,
                             const std::stop_token& stop) {
  if (!memory.cover_work(body.text().size(), wants_token_strs(body) ? kToTellTokens : kToTellIds))
    return fail(no_memory_for("tokenizing"));
  const prompt::Preprocessor& preprocessor = *asked.preprocessor;
  const prompt::RenderContext context{.now = std::chrono::system_clock::now(), .stop = stop};
  if (!body.has("messages") && !body.has("prompt")) {
    return fail(
        Error(Errc::InvalidRequest, "the request body has neither \"prompt\" nor \"messages\"")
            .with_param("prompt"));
  }
  const engine::Api api = body.has("messages") ? engine::Api::Chat : engine::Api::Completions;
  auto prepared = pipeline::prepare(preprocessor, api, body, context, asked.rules);
  if (!prepared) return fail(std::move(prepared.error()));
  if (!prepared->exact()) {
    return fail(Errc::InvalidRequest,
                fmt::format("cannot be tokenized exactly: {}", prepared->inexact));
  }
  if (prepared->prompts.size() != 1) {
    return fail(Error(Errc::InvalidRequest, "\"prompt\" must be one text").with_param("prompt"));
  }
  const tokenizer::TokenIds& ids = prepared->prompts.front();
  // The engines may have been started with less than the model takes.
  std::optional<std::uint64_t> longest = asked.max_model_len;
  if (!longest) longest = preprocessor.max_model_length();
  std::string json =
      fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}],"token_strs":)", ids.size(),
                  longest ? std::to_string(*longest) : "null", fmt::join(ids, ","));
  if (!wants_token_strs(body)) {
    json += "null}";
    return json;
  }
  json += '[';
  for (const tokenizer::TokenId id : ids) {
    if (json.back() != '[') json += ',';
    json += wire::json_quote(preprocessor.tokenizer().token(id).value_or(""));
  }
  json += "]}";
  return json;
}

Result<std::string> detokenize(const Asked& asked, const wire::JsonObject& body,
                               MemoryShare& memory, const std::stop_token&) {
  const prompt::Preprocessor& preprocessor = *asked.preprocessor;
  const auto list = body.find("tokens");
  if (!list || list->empty() || list->front() != '[') {
    return fail(
        Error(Errc::InvalidRequest, "\"tokens\" must be a list of token ids").with_param("tokens"));
  }
  const auto ids = prompt::token_ids_of(*list, "tokens");
  if (!ids) return fail(ids.error());
  std::size_t text = 0;
  for (const tokenizer::TokenId id : *ids) {
    if (const auto token = preprocessor.tokenizer().token(id)) {
      text += token->size();
      continue;
    }
    return fail(
        Error(Errc::InvalidRequest, fmt::format("\"tokens\": {} is beyond the vocabulary", id))
            .with_param("tokens"));
  }
  if (!memory.cover(MemoryBudget::kToRead * body.text().size() + kToTellText * text))
    return fail(no_memory_for("detokenizing"));
  std::string json = R"({"prompt":)";
  json += wire::json_quote(preprocessor.tokenizer().decode(*ids, tokenizer::SkipSpecial::No));
  json += '}';
  return json;
}

// Reads the body and answers it, all of it on a CPU thread.
Result<std::string> answer(const fleet::Fleet& fleet, const pipeline::Tokenizers& tokenizers,
                           std::string_view text, MemoryShare& memory, const std::stop_token& stop,
                           Answer make) {
  if (!memory.cover_work(text.size(), MemoryBudget::kToRead))
    return fail(no_memory_for("reading the request's body"));
  auto body = wire::JsonObject::parse(text, &memory);
  if (!body) return fail(std::move(body.error()));
  auto asked = find_asked(fleet, tokenizers, *body);
  if (!asked) return fail(std::move(asked.error()));
  return make(*asked, *body, memory, stop);
}

awaitable<void> serve(const fleet::Fleet& fleet, const pipeline::Tokenizers& tokenizers,
                      net::CpuPool& cpu, pipeline::LimitRefusals& limits, Answer make,
                      http::Call call) {
  std::stop_source stop;
  const Cancellation::Listener listener(call.cancellation, [&stop] { stop.request_stop(); });
  auto made = co_await cpu.run(
      [&fleet, &tokenizers, &body = call.body, &memory = call.memory, token = stop.get_token(),
       make] { return answer(fleet, tokenizers, body, memory, token, make); });
  if (made) {
    co_await http::respond_json(std::move(call), 200, *std::move(made));
  } else {
    limits.count(made.error());
    co_await http::respond_error(std::move(call), std::move(made.error()));
  }
}

}  // namespace

std::vector<http::Route> tokenize_routes(const fleet::Fleet& fleet,
                                         const pipeline::Tokenizers& tokenizers, net::CpuPool& cpu,
                                         pipeline::LimitRefusals& limits) {
  const auto handler = [&fleet, &tokenizers, &cpu, &limits](Answer make) -> http::Handler {
    return [&fleet, &tokenizers, &cpu, &limits, make](http::Call call) {
      return serve(fleet, tokenizers, cpu, limits, make, std::move(call));
    };
  };
  return {{"POST", "/tokenize", http::Access::Key, handler(tokenize)},
          {"POST", "/detokenize", http::Access::Key, handler(detokenize)}};
}

}  // namespace baton::api
