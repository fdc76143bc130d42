// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/load.h"
#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::config {

// A fleet that is right, to put below keys under test.
inline constexpr std::string_view kFleet =
    "\nmodels: [{name: demo, workers: [{url: \"http://127.0.0.1:9001\"}]}]\n";

inline std::string with_fleet(std::string_view text) {
  return std::string(text) + std::string(kFleet);
}

inline Config accepted(std::string_view yaml, const std::vector<Override>& overrides = {}) {
  auto config = parse(yaml, "baton.yaml", overrides);
  if (config) return *std::move(config);
  for (const Problem& problem : config.error()) ADD_FAILURE() << problem.to_string();
  return {};
}

inline std::vector<std::string> refused(std::string_view yaml,
                                        const std::vector<Override>& overrides = {}) {
  const auto config = parse(yaml, "baton.yaml", overrides);
  std::vector<std::string> shown;
  if (config) {
    ADD_FAILURE() << "accepted: " << yaml;
    return shown;
  }
  for (const Problem& problem : config.error()) shown.push_back(problem.to_string());
  return shown;
}

// One problem, at this place, whose message says this.
inline auto says(std::string place, std::string message) {
  using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::StartsWith;
  return ElementsAre(AllOf(StartsWith(place + ": "), HasSubstr(message)));
}

inline model::WorkerSpec worker_at(std::string host, std::uint16_t port) {
  model::WorkerSpec spec;
  spec.endpoint = {std::move(host), port};
  return spec;
}

inline Model model_with(std::string name, std::vector<model::WorkerSpec> workers) {
  Model result;
  result.name = std::move(name);
  result.workers = std::move(workers);
  return result;
}

// A file that is gone with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) : path_(directory_.write("baton.yaml", text)) {}
  const std::string& path() const { return path_; }

 private:
  test::TemporaryDirectory directory_;
  std::string path_;
};

}  // namespace baton::config
