-- apply: lets the C side call a formula by its name. formula { name =, inputs = { symbol = value } }.
return {
  formula = function(arg) return require("calc." .. arg.name)(arg.inputs) end,
}
