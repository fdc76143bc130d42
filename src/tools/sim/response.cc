// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/response.h"

#include "tools/sim/sglang_response.h"
#include "tools/sim/vllm_response.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

// The tool call's arguments are a JSON text inside a JSON string; its words need no escaping.
constexpr std::string_view kArgumentsHead = R"({\"text\":\")";
constexpr std::string_view kArgumentsTail = R"(\"})";

}  // namespace

std::string json_string(std::string_view text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::unique_ptr<ResponseShape> make_response_shape(const Options& options,
                                                   const GenerationRequest& request, std::string id,
                                                   std::int64_t created) {
  if (options.engine == model::Engine::Vllm)
    return std::make_unique<VllmResponse>(options, request, std::move(id), created);
  if (options.engine == model::Engine::Sglang)
    return std::make_unique<SglangResponse>(request, std::move(id), created);
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

std::string format_usage(const Usage& usage) {
  return fmt::format(
      R"({{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      usage.prompt_tokens, usage.prompt_tokens + usage.completion_tokens, usage.completion_tokens,
      usage.cached_tokens);
}

ResponseShape::ResponseShape(model::Engine engine, const GenerationRequest& request, std::string id,
                             const std::string& model, std::int64_t created)
    : engine_(engine),
      api_(request.api),
      tool_call_(request.limits.tool_call),
      token_ids_(request.return_token_ids),
      tool_name_(json_string(request.tool_name)),
      id_(std::move(id)),
      model_(model),
      created_(created) {
  head_ = fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},)", json_string(id_),
                      api_ == Api::Chat ? "chat.completion.chunk" : "text_completion", created_,
                      json_string(model_));
}

void ResponseShape::begin(std::string& out, std::uint32_t index) const {
  out += head_;
  fmt::format_to(std::back_inserter(out), R"("choices":[{{"index":{},)", index);
}

void ResponseShape::end(std::string& out, const AnswerPlan* finish, const Usage* usage) {
  out += R"("logprobs":null,"finish_reason":)";
  if (finish == nullptr) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), R"("{}","stop_reason":)", to_string(finish->finish));
    out += finish->matched_stop ? json_string(*finish->matched_stop) : "null";
  }
  out += "}]";
  if (usage != nullptr) out += R"(,"usage":)" + format_usage(*usage);
  out += "}\n\n";
}

void ResponseShape::open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                                const std::vector<TokenId>& /*prompt*/, const Usage*) const {
  if (api_ == Api::Completions) return;
  begin(out, index);
  out += R"("delta":{"role":"assistant","content":""},)";
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
                          const std::vector<TokenId>* /*prompt*/) const {
  begin(out, index);
  auto it = std::back_inserter(out);
  if (api_ == Api::Completions) {
    fmt::format_to(it, R"("text":"{}",)", piece.text);
  } else if (tool_call_) {
    // The first word opens the arguments' JSON, the last one closes it.
    fmt::format_to(
        it, R"("delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{}{}{}"}}}}]}},)",
        piece.opens ? kArgumentsHead : "", piece.text,
        finish != nullptr && finish->finish == Finish::ToolCalls ? kArgumentsTail : "");
  } else {
    fmt::format_to(it, R"("delta":{{"content":"{}"}},)", piece.text);
  }
  end(out, finish_rides_on_token() ? finish : nullptr, usage);
}

void ResponseShape::close_choice(std::string& out, std::uint32_t index,
                                 const AnswerPlan& plan) const {
  begin(out, index);
  out += api_ == Api::Completions ? R"("text":"",)" : R"("delta":{},)";
  end(out, &plan, nullptr);
}

void ResponseShape::usage(std::string& out, const Usage& usage) const {
  out += head_;
  fmt::format_to(std::back_inserter(out), "\"choices\":[],\"usage\":{}}}\n\n", format_usage(usage));
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
      one["text"] = choice.text;
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
    one["logprobs"] = nullptr;
    one["finish_reason"] = to_string(choice.finish);
    one["stop_reason"] =
        choice.matched_stop ? ordered_json(*choice.matched_stop) : ordered_json(nullptr);
    if (!choice.disaggregated_params.empty()) {
      one["disaggregated_params"] = ordered_json::parse(choice.disaggregated_params);
      body["prompt_token_ids"] = *choice.prompt;
    }
    body["choices"].push_back(std::move(one));
  }
  body["usage"] = ordered_json::parse(format_usage(usage));
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace baton::sim
