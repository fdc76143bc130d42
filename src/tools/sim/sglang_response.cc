// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_response.h"

#include "tools/sim/logprobs.h"
#include "tools/sim/sglang_logprobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

// The tool call's arguments are a JSON text inside a JSON string; its words need no escaping.
constexpr std::string_view kSglangCallHead = R"({\"text\":\")";
constexpr std::string_view kSglangCallTail = R"(\"})";

std::string sglang_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json sglang_usage(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"reasoning_tokens", 0},
          {"completion_tokens_details", nullptr}};
}

std::string sglang_call_id(std::uint64_t hash) { return fmt::format("call_{:x}", hash); }

}  // namespace

SglangResponse::SglangResponse(const GenerationRequest& request, std::string id,
                               std::int64_t created)
    : ResponseShape(model::Engine::Sglang, request, std::move(id), request.model, created),
      samples_(request.n),
      echoes_(request.echoes),
      logprobs_(request.logprobs),
      input_logprobs_(!echoes_.empty() && logprobs_.value_or(0) > 0 &&
                      request.phase != Phase::Decode),
      extras_(request.sglang) {}

void SglangResponse::begin(std::string& out, std::uint32_t index) const {
  out += head_;
  fmt::format_to(std::back_inserter(out), R"("choices":[{{"index":{},)", index);
}

void SglangResponse::end(std::string& out, std::string_view logprobs, std::string_view finish,
                         const std::optional<std::string>& matched_stop) const {
  fmt::format_to(std::back_inserter(out), R"("logprobs":{},"finish_reason":)", logprobs);
  if (finish.empty()) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), R"("{}")", finish);
  }
  out += R"(,"matched_stop":)";
  out += matched_stop ? json_string(*matched_stop) : "null";
}

// Usage so far; in completions it omits the cached tokens.
void SglangResponse::add_usage(std::string& out, const Usage* usage) const {
  if (usage == nullptr) {
    if (api_ == Api::Completions || tool_call_) out += R"(,"usage":null)";
    return;
  }
  ordered_json told = sglang_usage(*usage);
  if (api_ == Api::Completions) told["prompt_tokens_details"] = nullptr;
  out += R"(,"usage":)" + told.dump();
}

void SglangResponse::open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                                 const std::vector<TokenId>& /*prompt*/, const Usage*) const {
  if (api_ == Api::Completions) return;
  begin(out, index);
  out += R"("delta":{"reasoning_content":null,"role":"assistant","content":""},)";
  end(out, "null", "", {});
  out += "}]}\n\n";
  if (!tool_call_) return;
  begin(out, index);
  add_tool_call(
      out, fmt::format(
               R"("id":"{}","index":0,"type":"function","function":{{"name":{},"arguments":""}})",
               sglang_call_id(hash), tool_name_));
  end(out, "null", "", {});
  out += "}]";
  add_usage(out, nullptr);
  out += "}\n\n";
}

void SglangResponse::add_tool_call(std::string& out, std::string_view call) const {
  fmt::format_to(
      std::back_inserter(out),
      R"("delta":{{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{{{}}}]}},)",
      call);
}

void SglangResponse::token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
                           const AnswerPlan* finish, const Usage* usage,
                           const std::vector<TokenId>* prompt) const {
  begin(out, index);
  auto it = std::back_inserter(out);
  if (api_ == Api::Completions) {
    const std::string echo =
        prompt == nullptr || echoes_.empty() ? "" : json_string(echo_of(index));
    fmt::format_to(it, R"("text":"{}{}",)", echo.empty() ? echo : echo.substr(1, echo.size() - 2),
                   piece.text);
  } else if (tool_call_) {
    // The first word opens the arguments' JSON, the last one closes it.
    const bool closes = finish != nullptr && finish->finish == Finish::ToolCalls;
    add_tool_call(
        out,
        fmt::format(
            R"("id":null,"index":0,"type":"function","function":{{"name":null,"arguments":"{}{}{}"}})",
            piece.opens ? kSglangCallHead : "", piece.text, closes ? kSglangCallTail : ""));
  } else {
    fmt::format_to(it, R"("delta":{{"reasoning_content":null,"content":"{}"}},)", piece.text);
  }
  const AnswerPlan* told = finish_rides_on_token() ? finish : nullptr;
  end(out, piece_logprobs(piece, prompt), told != nullptr ? to_string(told->finish) : "",
      told != nullptr ? told->matched_stop : std::nullopt);
  if (token_ids_ && api_ == Api::Completions) {
    std::vector<TokenId> ids = piece.earlier;
    if (piece.token) ids.push_back(*piece.token);
    fmt::format_to(it, R"(,"token_ids":[{}])", fmt::join(ids, ","));
    if (prompt != nullptr)
      fmt::format_to(it, R"(,"prompt_token_ids":[{}])", fmt::join(*prompt, ","));
  }
  out += "}]";
  add_usage(out, usage);
  out += "}\n\n";
}

void SglangResponse::close_choice(std::string& out, std::uint32_t index,
                                  const AnswerPlan& plan) const {
  begin(out, index);
  out += R"("delta":{"reasoning_content":null},)";
  end(out, "null", to_string(plan.finish), plan.matched_stop);
  out += "}]}\n\n";
}

void SglangResponse::extension(std::string& out, const std::vector<FinishedChoice>& choices,
                               const Usage& usage) const {
  const ordered_json told = sglext(choices, usage);
  if (told.empty()) return;
  out += head_;
  out += R"("choices":[],"usage":null,"sglext":)" + told.dump() + "}\n\n";
}

void SglangResponse::usage(std::string& out, const Usage& usage) const {
  ordered_json told = sglang_usage(usage);
  if (api_ == Api::Completions) told.erase("completion_tokens_details");
  out += head_;
  out += R"("choices":[],"usage":)" + told.dump() + "}\n\n";
}

void SglangResponse::abort(std::string& out) const {
  begin(out, 0);
  out += api_ == Api::Completions ? R"("text":"",)" : R"("delta":{"reasoning_content":null},)";
  end(out, "null", "abort", {});
  out += "}]";
  if (api_ == Api::Completions) out += R"(,"usage":null)";
  out += "}\n\n";
}

std::string SglangResponse::aborted(const Usage& usage) const {
  ordered_json body = ordered_json::parse(
      whole({{.text = {}, .finish = Finish::Stop, .prompt = nullptr}}, usage, ""));
  body["choices"][0]["finish_reason"] = "abort";
  return body.dump();
}

std::string_view SglangResponse::echo_of(std::uint32_t index) const {
  return echoes_.empty() ? std::string_view() : echoes_[index / samples_];
}

std::string SglangResponse::completion_logprobs(const std::vector<TokenId>* prompt,
                                                std::span<const TokenId> tokens) const {
  const bool told = input_logprobs_ && prompt != nullptr;
  return sglang_logprobs(told ? std::span<const TokenId>(*prompt) : std::span<const TokenId>(),
                         tokens, *logprobs_);
}

std::string SglangResponse::chat_logprobs(std::uint64_t hash, std::uint64_t first,
                                          std::size_t count) const {
  ordered_json content = ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) {
    content.push_back(
        chat_logprob(output_logprobs(hash, first + i, *logprobs_), *logprobs_, TokenNames::Text));
  }
  return sglang_text({{"content", std::move(content)}});
}

std::string SglangResponse::piece_logprobs(const AnswerCursor::Piece& piece,
                                           const std::vector<TokenId>* prompt) const {
  if (!logprobs_) return "null";
  if (api_ == Api::Completions) {
    return completion_logprobs(
        prompt, piece.token ? std::span(&*piece.token, 1) : std::span<const TokenId>());
  }
  if (tool_call_) return "null";
  return chat_logprobs(piece.hash, piece.position, piece.earlier.size() + (piece.token ? 1 : 0));
}

std::string SglangResponse::choice_logprobs(const FinishedChoice& choice) const {
  if (!logprobs_) return "null";
  if (api_ == Api::Completions) return completion_logprobs(choice.prompt, choice.tokens);
  return chat_logprobs(choice.hash, choice.begun, choice.count);
}

ordered_json SglangResponse::sglext(const std::vector<FinishedChoice>& choices,
                                    const Usage& usage) const {
  ordered_json told = ordered_json::object();
  // The details are omitted if nothing was cached.
  if (extras_.cached_details && usage.cached_tokens > 0)
    told["cached_tokens_details"] = {{"device", usage.cached_tokens}, {"host", 0}};
  if (extras_.input_ids && !choices.empty() && choices.front().prompt != nullptr)
    told["input_ids"] = *choices.front().prompt;
  if (extras_.output_ids) {
    told["output_ids"] = ordered_json::array();
    for (const FinishedChoice& choice : choices) told["output_ids"].push_back(choice.tokens);
  }
  return told;
}

std::string SglangResponse::whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                                  const std::string&) const {
  const bool chat = api_ == Api::Chat;
  ordered_json body{{"id", id_},
                    {"object", chat ? "chat.completion" : "text_completion"},
                    {"created", created_},
                    {"model", model_},
                    {"choices", ordered_json::array()}};
  for (const FinishedChoice& choice : choices) {
    ordered_json one{{"index", choice.index}};
    if (chat) {
      one["message"] = {
          {"role", "assistant"}, {"content", choice.text}, {"reasoning_content", nullptr}};
      if (tool_call_) {
        one["message"]["content"] = nullptr;
        one["message"]["tool_calls"] = ordered_json::array(
            {{{"id", sglang_call_id(choice.hash)},
              {"index", 0},
              {"type", "function"},
              {"function",
               {{"name", ordered_json::parse(tool_name_)}, {"arguments", choice.text}}}}});
      }
    } else {
      one["text"] = std::string(echo_of(choice.index)) + choice.text;
    }
    one["logprobs"] = ordered_json::parse(choice_logprobs(choice));
    one["finish_reason"] = to_string(choice.finish);
    one["matched_stop"] =
        choice.matched_stop ? ordered_json(*choice.matched_stop) : ordered_json(nullptr);
    if (token_ids_) one[chat ? "response_token_ids" : "token_ids"] = choice.tokens;
    if ((token_ids_ || (chat && extras_.prompt_ids)) && choice.prompt != nullptr)
      one["prompt_token_ids"] = *choice.prompt;
    body["choices"].push_back(std::move(one));
  }
  body["usage"] = sglang_usage(usage);
  const std::uint32_t end = choices.empty() ? 0 : choices.front().count;
  body["metadata"] = {
      {"weight_version", "default"},
      {"weight_versions",
       ordered_json::array({{{"version", "default"}, {"start", 0}, {"end", end}}})}};
  if (ordered_json told = sglext(choices, usage); !told.empty()) body["sglext"] = std::move(told);
  return sglang_text(body);
}

}  // namespace baton::sim
