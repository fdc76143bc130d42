// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::config {

// One error in a configuration, for the person who wrote it.
struct Problem {
  std::string file;               // or "command line"
  int line = 0;                   // from 1; 0 where there is none
  std::string path;               // e.g. models[0].workers[1].role
  std::string message;            // what is wrong and what to do
  std::string to_string() const;  // file:line: path: message
};

// Every key: its path, type, default and meaning. docs/configuration.md is tested against it,
// --help is made from it.
struct Key {
  std::string_view path;     // e.g. timeouts.connect, models[].workers[].url
  std::string_view flag;     // e.g. --timeouts.connect; empty where there is none
  std::string_view type;     // duration, size, integer, boolean, string, address, list, one of …
  std::string_view def;      // default as a person would write it
  std::string_view meaning;  // one sentence
};
std::span<const Key> keys();

// A key set on the command line; it wins over the file. `path` is that of a Key that has a flag,
// `policy` (for models that have none in the file), or `worker`: then `value` is
// NAME=URL[,engine=…][,role=…][,bootstrap_port=…] and adds a worker to the model NAME, which is
// made where absent.
struct Override {
  std::string path;
  std::string value;
};

// Parses YAML text. Reports every problem, not only the first. `file` is for messages only. Never
// throws, whatever the bytes. Reads no other files than those of `api_keys_file`, `admin_keys_file` and
// `etcd.password_file`.
std::expected<Config, std::vector<Problem>> parse(std::string_view yaml, std::string_view file,
                                                  std::span<const Override> overrides);

// Reads and parses a file.
std::expected<Config, std::vector<Problem>> load(const std::string& file,
                                                 std::span<const Override> overrides);

}  // namespace baton::config
