-- Candidates in HAProxy's own Lua: a filter that counts tokens, and a service that forwards by itself.
local ports = {small = 18101, large = 18102, dies = 18103}

local usage = {id = "usage", flags = filter.FLT_CFG_FL_HTX}
usage.__index = usage
function usage:new() return setmetatable({tail = ""}, usage) end
function usage:start_analyze(txn, channel)
  if channel:is_resp() then filter.register_data_filter(self, channel) end
end
function usage:http_payload(txn, message)
  local data = self.tail .. (message:body() or "")
  local counted = data:match('"completion_tokens":%s*(%d+)')
  if counted then core.log(core.debug, "tokens " .. counted) end
  self.tail = data:sub(-64)
end
core.register_filter("usage", usage, function(class, arguments) return class end)

core.register_service("gateway", "http", function(applet)
  local body = applet:receive()
  local model = body:match('"model"%s*:%s*"([^"]*)"')
  if not ports[model] then
    applet:set_status(404)
    applet:start_response()
    applet:send('{"error": {"message": "The models are small, large, dies.", "code": 404}}')
    return
  end
  local engine = core.tcp()
  engine:settimeout(300)
  engine:connect("127.0.0.1", ports[model])
  engine:send("POST " .. applet.path .. " HTTP/1.1\r\nHost: x\r\nContent-Length: " .. #body .. "\r\n\r\n")
  engine:send(body)
  applet:set_status(tonumber((engine:receive("*l") or " 502"):match(" (%d+)")))
  local line = engine:receive("*l")
  while line and line ~= "" and line ~= "\r" do
    local name, value = line:match("^([^:]+):%s*(.-)\r?$")
    if name:lower() == "content-type" then applet:add_header(name, value) end
    line = engine:receive("*l")
  end
  applet:start_response()
  while true do
    local size = tonumber((engine:receive("*l") or "0"):match("%x+") or "0", 16)
    if size == 0 then break end
    applet:send(engine:receive(size))
    engine:receive(2)
  end
  engine:close()
end)
