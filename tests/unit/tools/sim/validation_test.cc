// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/validation.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using nlohmann::json;

// What a value is read as, or the type of the error.
std::string outcome(FieldKind kind, const json& value, bool nullable = true) {
  ValidationErrors errors;
  const auto taken = read_field({"x", kind, nullable}, value, "body.x", errors);
  if (taken) return "taken as " + taken->dump();
  if (errors.empty()) return "right";
  const std::string message = errors.error().message();
  const std::size_t begin = message.find("'type': '") + 9;
  return message.substr(begin, message.find('\'', begin) - begin);
}

TEST(Validation, TakesNumbersAndTruthsInOtherClothes) {
  EXPECT_EQ(outcome(FieldKind::Number, 1), "right");
  EXPECT_EQ(outcome(FieldKind::Number, "0.5"), "taken as 0.5");
  EXPECT_EQ(outcome(FieldKind::Number, true), "taken as 1.0");
  EXPECT_EQ(outcome(FieldKind::Integer, "12"), "taken as 12");
  EXPECT_EQ(outcome(FieldKind::Integer, 2.0), "taken as 2");
  EXPECT_EQ(outcome(FieldKind::Bool, "Yes"), "taken as true");
  EXPECT_EQ(outcome(FieldKind::Bool, 0), "taken as false");
  EXPECT_EQ(outcome(FieldKind::Text, nullptr), "right");
}

TEST(Validation, NamesWhatIsWrong) {
  EXPECT_EQ(outcome(FieldKind::Number, "hot"), "float_parsing");
  EXPECT_EQ(outcome(FieldKind::Number, json::array()), "float_type");
  EXPECT_EQ(outcome(FieldKind::Integer, "1.5"), "int_parsing");
  EXPECT_EQ(outcome(FieldKind::Integer, 1.5), "int_from_float");
  EXPECT_EQ(outcome(FieldKind::Integer, json::object()), "int_type");
  EXPECT_EQ(outcome(FieldKind::Bool, 2), "bool_parsing");
  EXPECT_EQ(outcome(FieldKind::Bool, json::array()), "bool_type");
  EXPECT_EQ(outcome(FieldKind::Text, 5), "string_type");
  EXPECT_EQ(outcome(FieldKind::Object, 5), "dict_type");
  EXPECT_EQ(outcome(FieldKind::List, 5), "list_type");
  EXPECT_EQ(outcome(FieldKind::Model, 5), "model_attributes_type");
  EXPECT_EQ(outcome(FieldKind::Integer, nullptr, false), "int_type");
}

TEST(Validation, CountsErrorsAndPointsAtTheFirst) {
  ValidationErrors errors;
  errors.add("int_parsing", "body.n", "Input should be a valid integer", "it's two");
  errors.add_union(3, "dict_type", "body.m", "Input should be a valid dictionary", {1, 2});
  EXPECT_EQ(errors.error().param(), "body.n");
  EXPECT_EQ(errors.error().code(), kValidation);
  EXPECT_EQ(errors.error().message(),
            "4 validation errors:\n"
            "  {'type': 'int_parsing', 'loc': 'body.n', 'msg': 'Input should be a valid integer', "
            "'input': \"it's two\"}\n"
            "  {'type': 'dict_type', 'loc': 'body.m', 'msg': 'Input should be a valid dictionary', "
            "'input': '<list of 2 items>'}");
}

}  // namespace
}  // namespace baton::sim
