-- Leave the queue, give back what was handed over meanwhile, and see that a free lock finds its next
-- owner. Also the release after a request that was never answered.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 incarnation; '' in quarantine
-- include lib/keys.lua
-- include lib/incarnation.lua
-- include lib/queue.lua
leave_queue(ARGV[1])
local holder = call('GET', KEYS[1])
if holder == ARGV[1] or holder == ARGV[1] .. '!' then -- '!': it was broken
    call('DEL', KEYS[1])
    holder = false
end
if not holder and call('EXISTS', QUEUE) == 1 then
    pass_on(ARGV[2])
end
return {'left'}
