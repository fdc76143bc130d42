// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/request_fields.h"

#include "wire/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::api {
namespace {

std::string list_of(std::span<const Filter> filters) {
  std::string list = filters.size() == 1 ? "there is " : "there are ";
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (i > 0) list += i + 1 == filters.size() ? " and " : ", ";
    list += fmt::format("{}=", filters[i].name);
  }
  return list;
}

}  // namespace

Result<void> read_filters(std::string_view target, std::span<const Filter> filters) {
  const std::size_t mark = target.find('?');
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::string_view name = pair.substr(0, pair.find('='));
    const auto found = std::ranges::find(filters, name, &Filter::name);
    if (found == filters.end() || name.size() == pair.size()) {
      return fail(Errc::InvalidRequest, fmt::format("{} is no filter; {}",
                                                    wire::percent_decoded(pair), list_of(filters)));
    }
    *found->value = wire::percent_decoded(pair.substr(name.size() + 1));
  }
  return {};
}

Result<fleet::Fleet::Served> find_model(const fleet::Fleet& fleet, const wire::JsonObject& body) {
  const std::string name = body.find_string("model").value_or("");
  if (name.empty()) {
    auto models = fleet.models();
    if (models.size() == 1) return fleet::Fleet::Served{.model = std::move(models.front())};
    return fail(Error(Errc::InvalidRequest, "the request body has no usable \"model\"")
                    .with_param("model"));
  }
  if (auto served = fleet.find_served(name); served.model) return served;
  return fail(Error(Errc::ModelNotFound,
                    fmt::format("the model \"{}\" does not exist", name.substr(0, 128)))
                  .with_param("model"));
}

}  // namespace baton::api
