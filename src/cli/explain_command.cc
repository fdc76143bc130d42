// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/explain_command.h"

#include "cli/explain_text.h"
#include "cli/serve_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace baton::cli {
namespace {

constexpr int kExplainRefused = 1;
constexpr std::string_view kPath = "/v1/decisions";

constexpr std::string_view kExplainExamples = R"(Examples:
  baton explain                          ids of the last requests, the latest first
  baton explain 3f2a9c                   where that request went, and why
  baton explain 3f2a9c --json | jq .     all that is remembered, for programs

The id is the x-request-id of the answer; clients can choose it by sending that header. A request for several choices is
served as several: ID-0, ID-1 and so on. As many requests are remembered as "decisions" in the configuration says.

For each worker that was chosen there is a table of those it was chosen from, the chosen one first and marked *: what
each had cached, what it had to do, each term of its cost, and why it was not taken. docs/choosing.md explains the costs.
POST /v1/route names the workers that would serve a request, without sending it: docs/admin-api.md.)";

int refuse(int code, std::string_view what) {
  fmt::print(stderr, "baton explain: {}\n", what);
  return code;
}

Result<std::string> look(AdminClient& client, const ExplainOptions& options) {
  std::string path(kPath);
  if (!options.request.empty()) path += "/" + percent_encoded(options.request);
  auto answer = body_of(client.ask("GET", path));
  if (!answer) return answer;
  if (options.json) return *answer + "\n";
  return options.request.empty() ? recent_requests(*answer) : explanation(*answer);
}

}  // namespace

CLI::App* add_explain_command(CLI::App& root, ExplainOptions& options) {
  CLI::App* command =
      root.add_subcommand("explain", "Say why a request went to the workers it went to");
  command->add_option("request", options.request, "Its id; none: list the last ones");
  add_admin_flags(*command, options.access);
  command->add_flag("--json", options.json, "Print what the router answers, as JSON");
  command->footer(std::string(kExplainExamples));
  return command;
}

int run_explain_command(const ExplainOptions& options) {
  auto client = client_of(options.access);
  if (!client) return refuse(kCannotStart, client.error().message());
  const auto text = look(*client, options);
  if (!text) return refuse(kExplainRefused, text.error().message());
  fmt::print("{}", *text);
  return 0;
}

}  // namespace baton::cli
