// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/response.h"

#include "sim/sglang_logprobs.h"
#include "sim/vllm_response.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

// The tool call's arguments are a JSON text inside a JSON string; its words need no escaping.
constexpr std::string_view kArgumentsHead = R"({\"text\":\")";
constexpr std::string_view kArgumentsTail = R"(\"})";

ordered_json token_ids_json(const std::vector<TokenId>& ids) { return ordered_json(ids); }

}  // namespace

std::string json_string(std::string_view text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::unique_ptr<ResponseShape> make_response_shape(const Options& options,
                                                   const GenerationRequest& request, std::string id,
                                                   std::int64_t created) {
  if (options.engine == model::Engine::Vllm)
    return std::make_unique<VllmResponse>(options, request, std::move(id), created);
  return std::make_unique<ResponseShape>(options.engine, request, std::move(id), request.model,
                                         created);
}

std::string_view to_string(Finish finish) {
  switch (finish) {
    case Finish::Stop:
      return "stop";
    case Finish::Length:
      return "length";
    case Finish::ToolCalls:
      return "tool_calls";
  }
  return "";
}

std::string format_usage(const Usage& usage, UsageNulls nulls) {
  // SGLang's has more; the last chunk of a stream leaves out what is null.
  const bool more = nulls != UsageNulls::NotSglang;
  return fmt::format(
      R"({{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}{}{}}})",
      usage.prompt_tokens, usage.prompt_tokens + usage.completion_tokens, usage.completion_tokens,
      usage.cached_tokens, more ? R"(,"reasoning_tokens":0)" : "",
      nulls == UsageNulls::Told ? R"(,"completion_tokens_details":null)" : "");
}

ResponseShape::ResponseShape(model::Engine engine, const GenerationRequest& request, std::string id,
                             const std::string& model, std::int64_t created)
    : engine_(engine),
      api_(request.api),
      tool_call_(request.limits.tool_call),
      token_ids_(request.return_token_ids),
      samples_(request.n),
      echoes_(request.echoes),
      logprobs_(request.logprobs),
      input_logprobs_(!echoes_.empty() && logprobs_.value_or(0) > 0 &&
                      request.phase != Phase::Decode),
      tool_name_(json_string(request.tool_name)),
      id_(std::move(id)),
      model_(model),
      created_(created) {
  head_ = fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},)", json_string(id_),
                      api_ == Api::Chat ? "chat.completion.chunk" : "text_completion", created_,
                      json_string(model_));
}

// SGLang's chat gives them in whole answers only.
bool ResponseShape::streams_token_ids() const {
  return token_ids_ && (engine_ != model::Engine::Sglang || api_ == Api::Completions);
}

// Chats of SGLang end with a chunk of their own.
bool ResponseShape::finish_rides_on_token() const {
  if (engine_ == model::Engine::Vllm) return true;
  return (engine_ != model::Engine::Sglang || api_ == Api::Completions) && !tool_call_;
}

void ResponseShape::begin(std::string& out, std::uint32_t index,
                          const std::vector<TokenId>* prompt) const {
  const auto add_prompt = [&] {
    fmt::format_to(std::back_inserter(out), R"("prompt_token_ids":[{}],)", fmt::join(*prompt, ","));
  };
  out += head_;
  const bool told = prompt != nullptr && streams_token_ids();
  if (told && api_ == Api::Chat) add_prompt();
  fmt::format_to(std::back_inserter(out), R"("choices":[{{"index":{},)", index);
  if (told && api_ == Api::Completions) add_prompt();
}

std::string_view ResponseShape::echo_of(std::uint32_t index) const {
  return echoes_.empty() ? std::string_view() : echoes_[index / samples_];
}

std::string ResponseShape::logprobs_of(const std::vector<TokenId>* prompt,
                                       std::span<const TokenId> tokens) const {
  if (!logprobs_) return "null";
  const bool told = input_logprobs_ && prompt != nullptr;
  return sglang_logprobs(told ? std::span<const TokenId>(*prompt) : std::span<const TokenId>(),
                         tokens, *logprobs_);
}

void ResponseShape::end(std::string& out, const AnswerPlan* finish, const Usage* usage,
                        std::string_view logprobs) const {
  out += R"("logprobs":)";
  out += logprobs;
  out += R"(,"finish_reason":)";
  if (finish == nullptr) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), R"("{}")", to_string(finish->finish));
  }
  const bool nulls = engine_ == model::Engine::Sglang;
  if (finish != nullptr || nulls) {
    out += nulls ? R"(,"matched_stop":)" : R"(,"stop_reason":)";
    const bool matched = finish != nullptr && finish->matched_stop;
    out += matched ? json_string(*finish->matched_stop) : "null";
  }
  out += "}]";
  if (usage != nullptr) {
    out += R"(,"usage":)";
    out += format_usage(*usage, nulls ? UsageNulls::Told : UsageNulls::NotSglang);
  } else if (nulls) {
    out += R"(,"usage":null)";
  }
  out += "}\n\n";
}

void ResponseShape::open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                                const std::vector<TokenId>& prompt, const Usage*) const {
  if (api_ == Api::Completions) return;
  begin(out, index, &prompt);
  out += R"("delta":{"role":"assistant","content":"")";
  out +=
      engine_ == model::Engine::Sglang ? R"(,"reasoning_content":null,"tool_calls":null},)" : "},";
  end(out, nullptr, nullptr);
  if (!tool_call_) return;
  begin(out, index);
  fmt::format_to(
      std::back_inserter(out),
      R"("delta":{{"tool_calls":[{{"index":0,"id":"call_{:x}","type":"function","function":{{"name":{},"arguments":""}}}}]}},)",
      hash, tool_name_);
  end(out, nullptr, nullptr);
}

void ResponseShape::token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
                          const AnswerPlan* finish, const Usage* usage,
                          const std::vector<TokenId>* prompt) const {
  begin(out, index, api_ == Api::Completions ? prompt : nullptr);
  auto it = std::back_inserter(out);
  if (api_ == Api::Completions) {
    const std::string echo =
        prompt == nullptr || echoes_.empty() ? "" : json_string(echo_of(index));
    fmt::format_to(it, R"("text":"{}{}",)", echo.empty() ? echo : echo.substr(1, echo.size() - 2),
                   piece.text);
  } else if (tool_call_) {
    // The first word opens the arguments' JSON, the last one closes it.
    fmt::format_to(
        it, R"("delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{}{}{}"}}}}]}},)",
        piece.opens ? kArgumentsHead : "", piece.text,
        finish != nullptr && finish->finish == Finish::ToolCalls ? kArgumentsTail : "");
  } else if (engine_ == model::Engine::Sglang) {
    fmt::format_to(
        it, R"("delta":{{"role":null,"content":"{}","reasoning_content":null,"tool_calls":null}},)",
        piece.text);
  } else {
    fmt::format_to(it, R"("delta":{{"content":"{}"}},)", piece.text);
  }
  if (streams_token_ids()) {
    std::vector<TokenId> ids = piece.earlier;
    if (piece.token) ids.push_back(*piece.token);
    fmt::format_to(it, R"("token_ids":[{}],)", fmt::join(ids, ","));
  }
  const std::string logprobs =
      logprobs_of(prompt, piece.token ? std::span(&*piece.token, 1) : std::span<const TokenId>());
  end(out, finish_rides_on_token() ? finish : nullptr, usage, logprobs);
}

void ResponseShape::close_choice(std::string& out, std::uint32_t index,
                                 const AnswerPlan& plan) const {
  begin(out, index);
  out += api_ == Api::Completions ? R"("text":"",)"
         : engine_ == model::Engine::Sglang
             ? R"("delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},)"
             : R"("delta":{},)";
  end(out, &plan, nullptr);
}

void ResponseShape::usage(std::string& out, const Usage& usage) const {
  out += head_;
  fmt::format_to(std::back_inserter(out), "\"choices\":[],\"usage\":{}}}\n\n",
                 format_usage(usage, engine_ == model::Engine::Sglang ? UsageNulls::LeftOut
                                                                      : UsageNulls::NotSglang));
}

void ResponseShape::abort(std::string& out) const {
  begin(out, 0);
  out +=
      api_ == Api::Completions
          ? R"("text":"",)"
          : R"("delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},)";
  out += R"("logprobs":null,"finish_reason":"abort","matched_stop":null}],"usage":null})";
  out += "\n\n";
}

std::string ResponseShape::aborted(const Usage& usage) const {
  ordered_json body = ordered_json::parse(
      whole({{.text = {}, .finish = Finish::Stop, .prompt = nullptr}}, usage, ""));
  body["choices"][0]["finish_reason"] = "abort";
  return body.dump();
}

std::string ResponseShape::whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                                 const std::string&) const {
  ordered_json body;
  body["id"] = id_;
  body["object"] = api_ == Api::Chat ? "chat.completion" : "text_completion";
  body["created"] = created_;
  body["model"] = model_;
  body["choices"] = ordered_json::array();
  for (const FinishedChoice& choice : choices) {
    ordered_json one;
    one["index"] = choice.index;
    if (api_ == Api::Completions) {
      one["text"] = std::string(echo_of(choice.index)) + choice.text;
    } else {
      ordered_json message{{"role", "assistant"}, {"content", choice.text}};
      if (tool_call_) {
        message["content"] = nullptr;
        message["tool_calls"] = ordered_json::array(
            {{{"id", fmt::format("call_{:x}", choice.hash)},
              {"type", "function"},
              {"function",
               {{"name", ordered_json::parse(tool_name_)}, {"arguments", choice.text}}}}});
      }
      one["message"] = std::move(message);
    }
    one["logprobs"] = ordered_json::parse(logprobs_of(choice.prompt, choice.tokens));
    one["finish_reason"] = to_string(choice.finish);
    one[engine_ == model::Engine::Sglang ? "matched_stop" : "stop_reason"] =
        choice.matched_stop ? ordered_json(*choice.matched_stop) : ordered_json(nullptr);
    if (token_ids_) {
      one[engine_ == model::Engine::Sglang && api_ == Api::Chat ? "response_token_ids"
                                                                : "token_ids"] =
          token_ids_json(choice.tokens);
      if (choice.prompt != nullptr &&
          (api_ == Api::Completions || engine_ == model::Engine::Sglang)) {
        one["prompt_token_ids"] = token_ids_json(*choice.prompt);
      }
    }
    if (!choice.disaggregated_params.empty()) {
      one["disaggregated_params"] = ordered_json::parse(choice.disaggregated_params);
      body["prompt_token_ids"] = token_ids_json(*choice.prompt);
    }
    body["choices"].push_back(std::move(one));
  }
  const bool sglang = engine_ == model::Engine::Sglang;
  body["usage"] =
      ordered_json::parse(format_usage(usage, sglang ? UsageNulls::Told : UsageNulls::NotSglang));
  if (sglang) body["metadata"] = {{"weight_version", "default"}};
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace baton::sim
