// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_response.h"

#include "tools/sim/vllm_release.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kCallHead = R"({\"text\":\")";
constexpr std::string_view kCallTail = R"(\"})";

// Release, the sizes that are not one, and a part of the configuration's hash.
std::string fingerprint(const Options& options) {
  std::string sizes;
  const auto add = [&sizes](std::string_view name, std::uint32_t size) {
    if (size > 1) sizes += fmt::format("-{}{}", name, size);
  };
  add("tp", options.tp_size);
  add("pp", options.pp_size);
  add("dp", options.dp_size);
  return fmt::format("vllm-{}{}-{:08x}", options.told_version(), sizes, token_of(options.model));
}

std::string call_id(std::uint64_t hash) { return fmt::format("chatcmpl-tool-{:016x}", hash); }

ordered_json or_null(const std::optional<std::string>& text) {
  return text ? ordered_json(*text) : ordered_json(nullptr);
}

std::string dumped(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

VllmResponse::VllmResponse(const Options& options, const GenerationRequest& request, std::string id,
                           std::int64_t created)
    : ResponseShape(model::Engine::Vllm, request, std::move(id), request.model, created),
      top_(request.logprobs),
      prompt_logprobs_(request.prompt_logprobs),
      names_(request.tokens_as_ids ? TokenNames::Ids : TokenNames::Text),
      echo_(request.echo && request.api == Api::Completions),
      prompt_alone_(request.prompt_alone),
      include_usage_(request.include_usage),
      n_(request.n),
      pieces_(request.pieces),
      prompt_text_(request.prompt_text),
      tells_more_of_cache_(options.release() >= kVllmTellsMoreOfCache),
      fingerprint_(json_string(fingerprint(options))) {}

std::string VllmResponse::echo(std::uint32_t index) const {
  std::string text;
  if (!echo_ || index / n_ >= pieces_.size()) return text;
  for (const std::string& piece : pieces_[index / n_]) text += piece;
  return text;
}

void VllmResponse::begin_choice(std::string& out, std::uint32_t index) const {
  out += head_;
  fmt::format_to(std::back_inserter(out), R"("choices":[{{"index":{},)", index);
}

void VllmResponse::end_chunk(std::string& out, const Usage* usage, bool last) const {
  out += "}]";
  if (usage != nullptr) {
    fmt::format_to(std::back_inserter(out),
                   R"(,"usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{}{}}})",
                   usage->prompt_tokens, usage->prompt_tokens + usage->completion_tokens,
                   usage->completion_tokens,
                   api_ == Api::Chat ? R"(,"completion_tokens_details":null)" : "");
  }
  if (last && !include_usage_) out += R"(,"system_fingerprint":)" + fingerprint_;
}

void VllmResponse::open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                               const std::vector<TokenId>& prompt, const Usage* usage) const {
  if (api_ == Api::Completions) return;
  begin_choice(out, index);
  out += R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)";
  end_chunk(out, usage, false);
  out += R"(,"prompt_token_ids":)";
  if (token_ids_) {
    fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(prompt, ","));
  } else {
    out += "null";
  }
  out += R"(,"prompt_text":)";
  out += prompt_text_ ? json_string(*prompt_text_) : "null";
  out += "}\n\n";
  if (!tool_call_) return;
  begin_choice(out, index);
  fmt::format_to(
      std::back_inserter(out),
      R"("delta":{{"content":null,"tool_calls":[{{"id":"{}","type":"function","index":0,"function":{{"name":{}}}}}]}},)"
      R"("logprobs":null,"finish_reason":null,"token_ids":{})",
      call_id(hash), tool_name_, token_ids_ ? "[]" : "null");
  end_chunk(out, usage, false);
  out += "}\n\n";
}

void VllmResponse::add_delta(std::string& out, const AnswerCursor::Piece& piece,
                             const AnswerPlan* finish) const {
  auto it = std::back_inserter(out);
  if (!tool_call_) {
    fmt::format_to(it, R"("delta":{{"content":"{}"}},)", piece.text);
    return;
  }
  // The first word opens the arguments' JSON, the last one closes it.
  fmt::format_to(
      it,
      R"("delta":{{"content":null,"tool_calls":[{{"index":0,"function":{{"arguments":"{}{}{}"}}}}]}},)",
      piece.opens ? kCallHead : "", piece.text,
      finish != nullptr && finish->finish == Finish::ToolCalls ? kCallTail : "");
}

void VllmResponse::add_finish(std::string& out, const AnswerPlan* finish) const {
  if (finish == nullptr) {
    out += api_ == Api::Chat ? R"("finish_reason":null,)"
                             : R"("finish_reason":null,"stop_reason":null,)";
    return;
  }
  fmt::format_to(std::back_inserter(out), R"("finish_reason":"{}","stop_reason":{},)",
                 to_string(finish->finish),
                 finish->matched_stop ? json_string(*finish->matched_stop) : "null");
}

void VllmResponse::add_prompt(CompletionLogprobs& logprobs, std::uint32_t index,
                              const std::vector<TokenId>& prompt) const {
  if (index / n_ >= pieces_.size()) return;
  const std::vector<std::string>& pieces = pieces_[index / n_];
  for (std::size_t i = 0; i < std::min(prompt.size(), pieces.size()); ++i) {
    if (i == 0) {
      logprobs.add_unknown(prompt[i], pieces[i]);
    } else {
      logprobs.add(prompt_logprobs(prompt[i], pieces[i], i, *top_));
    }
  }
}

void VllmResponse::add_logprobs(std::string& out, std::uint32_t index,
                                const AnswerCursor::Piece& piece,
                                const std::vector<TokenId>* prompt) const {
  if (!top_) {
    out += R"("logprobs":null,)";
    return;
  }
  const std::size_t count = piece.earlier.size() + (piece.token ? 1 : 0);
  ordered_json value;
  if (api_ == Api::Chat) {
    value["content"] = ordered_json::array();
    for (std::size_t i = 0; i < count; ++i) {
      value["content"].push_back(
          chat_logprob(output_logprobs(piece.hash, piece.position + i, *top_), *top_, names_));
    }
  } else {
    const std::size_t before = prompt == nullptr || !echo_ ? echo(index).size() : 0;
    CompletionLogprobs lists(piece.offset + before, names_);
    if (echo_ && prompt != nullptr) add_prompt(lists, index, *prompt);
    for (std::size_t i = 0; i < (prompt_alone_ ? 0 : count); ++i)
      lists.add(output_logprobs(piece.hash, piece.position + i, *top_));
    value = lists.json();
  }
  out += R"("logprobs":)" + dumped(value) + ",";
}

void VllmResponse::token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
                         const AnswerPlan* finish, const Usage* usage,
                         const std::vector<TokenId>* prompt) const {
  begin_choice(out, index);
  auto it = std::back_inserter(out);
  if (api_ == Api::Chat) {
    add_delta(out, piece, finish);
  } else if (echo_ && prompt != nullptr) {
    fmt::format_to(it, R"("text":{},)",
                   json_string(echo(index) + (prompt_alone_ ? "" : piece.text)));
  } else {
    fmt::format_to(it, R"("text":"{}",)", piece.text);
  }
  add_logprobs(out, index, piece, prompt);
  add_finish(out, finish);
  if (api_ == Api::Completions) {
    if (prompt != nullptr && (token_ids_ || echo_)) {
      fmt::format_to(it, R"("prompt_token_ids":[{}],)", fmt::join(*prompt, ","));
    } else {
      out += R"("prompt_token_ids":null,)";
    }
  }
  if (token_ids_) {
    out += R"("token_ids":[)";
    for (const TokenId id : piece.earlier) fmt::format_to(it, "{},", id);
    if (piece.token) fmt::format_to(it, "{}", *piece.token);
    if (out.back() == ',') out.pop_back();
    out += ']';
  } else {
    out += R"("token_ids":null)";
  }
  end_chunk(out, usage, finish != nullptr);
  out += "}\n\n";
}

void VllmResponse::usage(std::string& out, const Usage& usage) const {
  out += head_;
  fmt::format_to(
      std::back_inserter(out),
      R"("choices":[],"usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{})",
      usage.prompt_tokens, usage.prompt_tokens + usage.completion_tokens, usage.completion_tokens);
  if (tells_more_of_cache_ || usage.cached_tokens > 0) {
    fmt::format_to(std::back_inserter(out), R"(,"prompt_tokens_details":{{"cached_tokens":{})",
                   usage.cached_tokens);
    if (api_ == Api::Chat && tells_more_of_cache_) {
      fmt::format_to(std::back_inserter(out), R"(,"created_cache_tokens":{})",
                     usage.created_cache_tokens);
    }
    out += '}';
  }
  out += R"(},"system_fingerprint":)" + fingerprint_ + "}\n\n";
}

ordered_json VllmResponse::message(const FinishedChoice& choice) const {
  ordered_json message{{"role", "assistant"}, {"content", choice.text},
                       {"refusal", nullptr},  {"annotations", nullptr},
                       {"audio", nullptr},    {"function_call", nullptr}};
  if (tool_call_) {
    message["content"] = nullptr;
    message["tool_calls"] = ordered_json::array(
        {{{"id", call_id(choice.hash)},
          {"type", "function"},
          {"function", {{"name", ordered_json::parse(tool_name_)}, {"arguments", choice.text}}}}});
  }
  message["reasoning"] = nullptr;
  return message;
}

ordered_json VllmResponse::logprobs(const FinishedChoice& choice) const {
  if (!top_) return nullptr;
  const std::uint32_t count = prompt_alone_ ? 0 : choice.count;
  if (api_ == Api::Completions) {
    CompletionLogprobs lists(0, names_);
    if (echo_) add_prompt(lists, choice.index, *choice.prompt);
    for (std::uint32_t i = 0; i < count; ++i)
      lists.add(output_logprobs(choice.hash, choice.begun + i, *top_));
    return lists.json();
  }
  ordered_json content = ordered_json::array();
  for (std::uint32_t i = 0; i < count; ++i) {
    content.push_back(
        chat_logprob(output_logprobs(choice.hash, choice.begun + i, *top_), *top_, names_));
  }
  return {{"content", std::move(content)}};
}

ordered_json VllmResponse::usage_json(const Usage& usage) const {
  ordered_json details{{"cached_tokens", usage.cached_tokens}};
  if (tells_more_of_cache_) {
    details["created_cache_tokens"] =
        api_ == Api::Chat ? ordered_json(usage.created_cache_tokens) : ordered_json(nullptr);
    details["multimodal_tokens"] = nullptr;
  } else if (usage.cached_tokens == 0) {
    details = nullptr;
  }
  return {{"prompt_tokens", usage.prompt_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"prompt_tokens_details", std::move(details)},
          {"completion_tokens_details", nullptr}};
}

std::string VllmResponse::whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                                const std::string& kv_transfer_params) const {
  const bool chat = api_ == Api::Chat;
  ordered_json body{{"id", id_},
                    {"object", chat ? "chat.completion" : "text_completion"},
                    {"created", created_},
                    {"model", model_},
                    {"choices", ordered_json::array()}};
  const auto of_prompt = [&](const FinishedChoice& choice) -> ordered_json {
    const std::size_t index = choice.index / n_;
    if (!tells_prompt_logprobs() || index >= pieces_.size()) return nullptr;
    return prompt_logprobs_json(*choice.prompt, pieces_[index], *prompt_logprobs_);
  };
  const auto ids = [this](const std::vector<TokenId>& tokens) {
    return token_ids_ ? ordered_json(tokens) : ordered_json(nullptr);
  };
  for (const FinishedChoice& choice : choices) {
    ordered_json one{{"index", choice.index}};
    if (chat) {
      one["message"] = message(choice);
    } else {
      one["text"] = echo(choice.index) + (prompt_alone_ ? "" : choice.text);
    }
    one["logprobs"] = logprobs(choice);
    one["finish_reason"] = to_string(choice.finish);
    one["stop_reason"] = or_null(choice.matched_stop);
    one["token_ids"] = ids(choice.tokens);
    if (!chat) {
      one["prompt_logprobs"] = of_prompt(choice);
      one["prompt_token_ids"] = ids(*choice.prompt);
    }
    one["routed_experts"] = nullptr;
    body["choices"].push_back(std::move(one));
  }
  body["service_tier"] = nullptr;
  body["system_fingerprint"] = ordered_json::parse(fingerprint_);
  body["usage"] = usage_json(usage);
  if (chat && !choices.empty()) {
    body["prompt_logprobs"] = of_prompt(choices.front());
    body["prompt_token_ids"] = ids(*choices.front().prompt);
    body["prompt_text"] = or_null(prompt_text_);
  }
  body["kv_transfer_params"] =
      kv_transfer_params.empty() ? ordered_json(nullptr) : ordered_json::parse(kv_transfer_params);
  body["ec_transfer_params"] = nullptr;
  body["metrics"] = nullptr;
  return dumped(body);
}

}  // namespace baton::sim
