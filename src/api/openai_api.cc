// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/openai_api.h"

#include "api/readiness.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace baton::api {
namespace {

using boost::asio::awaitable;

// `parent`: the model that an adapter belongs to; empty: it is none.
std::string card(std::string_view id, std::int64_t created, std::string_view parent = {}) {
  const std::string of =
      parent.empty() ? std::string() : fmt::format(R"(,"parent":{})", wire::json_quote(parent));
  return fmt::format(R"({{"id":{},"object":"model","created":{},"owned_by":"baton"{}}})",
                     wire::json_quote(id), created, of);
}

std::string all_cards(const fleet::Fleet& fleet, std::int64_t created) {
  std::string cards;
  const auto add = [&](std::string_view id, std::string_view parent = {}) {
    if (!cards.empty()) cards += ',';
    cards += card(id, created, parent);
  };
  for (const auto& model : fleet.models()) {
    add(model->name());
    for (const std::string& alias : model->aliases()) add(alias);
  }
  for (const auto& [adapter, model] : fleet.adapters()) add(adapter, model);
  return fmt::format(R"({{"object":"list","data":[{}]}})", cards);
}

http::Handler completions(pipeline::Pipeline& pipeline, engine::Api api) {
  return [&pipeline, api](http::Call call) -> awaitable<void> {
    auto incoming = std::make_unique<pipeline::ClientRequest>(
        pipeline::ClientRequest{.api = api,
                                .headers = std::move(call.head.headers),
                                .body = std::move(call.body),
                                .request_id = std::move(call.request_id),
                                .received = call.received,
                                .trusted = call.trusted,
                                .client = std::move(call.client),
                                .memory = std::move(call.memory)});
    return pipeline.serve(std::move(incoming), call.response, call.cancellation);
  };
}

}  // namespace

std::vector<http::Route> openai_routes(pipeline::Pipeline& pipeline, fleet::Fleet& fleet,
                                       std::int64_t created) {
  const auto list = [&fleet, created](http::Call call) {
    return http::respond_json(std::move(call), 200, all_cards(fleet, created));
  };
  const auto retrieve = [&fleet, created](http::Call call) {
    const std::string_view name = call.head.path().substr(kModelsBelow.size());
    if (auto state = find_readiness(fleet, name))
      return http::respond_json(std::move(call), state->ready ? 200 : 503, std::move(state->json));
    const std::string id = wire::percent_decoded(name);
    if (const auto served = fleet.find_served(id); served.model) {
      return http::respond_json(
          std::move(call), 200,
          card(id, created, served.adapter ? std::string_view(served.model->name()) : ""));
    }
    return http::respond_error(
        std::move(call),
        Error(Errc::ModelNotFound, fmt::format("the model \"{}\" does not exist", id))
            .with_param("model"));
  };
  return {
      {"POST", "/v1/chat/completions", http::Access::Key, completions(pipeline, engine::Api::Chat)},
      {"POST", "/v1/completions", http::Access::Key,
       completions(pipeline, engine::Api::Completions)},
      {"GET", "/v1/models", http::Access::Key, list},
      {"GET", std::string(kModelsBelow), http::Access::Key, retrieve},
  };
}

}  // namespace baton::api
