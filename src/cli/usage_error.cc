// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/usage_error.h"

#include "config/values.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace baton::cli {
namespace {

// The commands that were given, outermost first: baton, workers, add.
std::vector<const CLI::App*> given_commands(const CLI::App& root) {
  std::vector<const CLI::App*> chain{&root};
  while (!chain.back()->get_subcommands().empty())
    chain.push_back(chain.back()->get_subcommands().front());
  return chain;
}

std::string full_name(const CLI::App& command) {
  if (command.get_parent() == nullptr) return command.get_name();
  return fmt::format("{} {}", full_name(*command.get_parent()), command.get_name());
}

std::string hint(std::string_view text, const std::vector<std::string>& names,
                 std::string_view prefix) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto near = config::nearest(text, views);
  return near.empty() ? std::string() : fmt::format("; did you mean {}{}?", prefix, near);
}

std::string unknown_option(std::string_view argument,
                           const std::vector<const CLI::App*>& commands) {
  const std::string name(argument.substr(0, argument.find('=')));
  const std::string_view word = std::string_view(name).substr(name.find_first_not_of('-'));
  std::vector<std::string> known;
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options())
      known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  // A known option that stands before the command it belongs to.
  for (const CLI::App* command : commands) {
    if (command->get_option_no_throw(name) != nullptr)
      return fmt::format("{} belongs after '{}'", name, full_name(*command));
  }
  return fmt::format("unknown option {}{}", config::shown(name), hint(word, known, "--"));
}

std::string unknown_word(const std::string& argument, const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::App* one : command.get_subcommands({})) known.push_back(one->get_name());
  if (known.empty()) return fmt::format("unexpected argument {}", config::shown(argument));
  std::string near = hint(argument, known, "");
  if (near.empty()) near = fmt::format("; there are {}", fmt::join(known, ", "));
  return fmt::format("unknown command {}{}", config::shown(argument), near);
}

bool looks_like_option(std::string_view argument) {
  return argument.starts_with('-') && argument.find_first_not_of('-') != std::string_view::npos;
}

}  // namespace

std::string usage_error(const CLI::App& root, const CLI::ParseError& problem) {
  const auto commands = given_commands(root);
  std::string what = problem.what();
  const CLI::App* where = commands.back();
  // A mistyped word comes first: it may be why another one is missing.
  for (const CLI::App* command : commands) {
    const std::vector<std::string> unknown = command->remaining();
    if (unknown.empty()) continue;
    where = command;
    what = looks_like_option(unknown.front()) ? unknown_option(unknown.front(), commands)
                                              : unknown_word(unknown.front(), *command);
    break;
  }
  const std::string name = full_name(*where);
  return fmt::format("{}: {}\nSee '{} --help'.\n", name, what, name);
}

}  // namespace baton::cli
