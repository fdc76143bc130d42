// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Baton's chat templates for the golden tests: one JSON request and one JSON answer a line.
// {"template": …, "variables": JSON as text, "now": seconds since 1970} gives {"text": …} or {"error": …}.

#include "libs/jinja/template.h"
#include "libs/jinja/value.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>
#include <string>

namespace baton::jinja {
namespace {

Result<std::string> render(const nlohmann::json& request) {
  const auto parsed = Template::parse(request.at("template").get<std::string>());
  if (!parsed) return fail(parsed.error());
  const auto variables = value_from_json(request.at("variables").get<std::string>());
  if (!variables) return fail(variables.error());
  const std::chrono::seconds since_1970(request.at("now").get<std::int64_t>());
  return (*parsed)->render(variables->as_dict(),
                           {.now = std::chrono::system_clock::time_point(since_1970)});
}

void serve() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto text = render(nlohmann::json::parse(line));
    nlohmann::json answer;
    if (text) {
      answer["text"] = *text;
    } else {
      answer["error"] = text.error().message();
    }
    std::cout << answer.dump() << '\n';
  }
}

}  // namespace
}  // namespace baton::jinja

int main() { baton::jinja::serve(); }
