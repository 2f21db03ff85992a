-- What a server of a cluster is responsible for: "epoch slots", as CLUSTER NODES shows it. A server that
-- takes slots over shows different ones, and a higher epoch unless it has the highest already.
local function shape()
    for line in string.gmatch(redis.call('CLUSTER', 'NODES'), '[^\r\n]+') do
        local epoch, slots =
            string.match(line, '^%x+ %S+ %S*myself%S* %S+ %d+ %d+ (%d+) %S+ ?(.*)$')
        if epoch then
            -- In brackets: a slot that is arriving, "[1-<-ID]", and one that is leaving, "[1->-ID]", a part of
            -- which is elsewhere already: "!1".
            slots = string.gsub(slots, '%[(%d+)%->%-[^%]]*%]', '!%1')
            return epoch .. ' ' .. string.gsub(slots, ' ?%[[^%]]*%]', '')
        end
    end
    return ''
end
